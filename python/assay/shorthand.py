"""Helpers of the family files: many names at once, and common value rules."""

from collections.abc import Callable, Mapping, Sequence

from assay.regimes import CHANGES, EVERYTHING, Traits
from assay.rules import AnyRule, Fill, Literal, integers, uniform
from assay.shared import UNIFORM
from assay.spec import FLOATING, INTEGER, TensorSpec

PUBLIC = ("paddle.{}", "paddle.Tensor.{}")
IN_PLACE = ("paddle.{}_", "paddle.Tensor.{}_")
METHOD_IN_PLACE = ("paddle.Tensor.{}_",)
LINALG = ("paddle.linalg.{}", "paddle.Tensor.{}")

LITERAL_LIMIT = 4096

# Why gradients of an API are not compared (`grad=`).
COUNTS = "the result consists of integers, booleans, counts or steps"
FROM_SHAPES = "the result is a constant or depends only on shapes and Python numbers"
INFERENCE_ONLY = "an inference kernel, for which Paddle registers no backward kernel"
MADE_CSR = "Paddle's conversion to CSR, which makes the operand, has no gradient"
NO_BACKWARD = "Paddle has no backward kernel, and its documentation promises none"
OTHER_OPERATOR = "Paddle's own derivative is another operator, which callers use explicitly"
OUTSIDE_GRAPH = "the call writes values outside of the autograd graph"
QUANTIZED = "quantised numbers have no derivative"
RANDOM = "the result is a random draw, whose gradient is undefined or random itself"
TIES = "the documentation does not say which of several equal values gets the gradient"
UP_TO_SIGN = "vectors are unique only up to sign or phase, and an upstream gradient depends on both"

# Traits of the largest element of each window. Windows overlap, so gradients are sums.
SELECTS = {"sums": False, "terms_back": 64.0}


def spread(stems: str, *forms: str) -> list[str]:
    """Every stem in every form: spread("abs neg", *PUBLIC) is paddle.abs, paddle.Tensor.abs, …"""
    return [form.format(stem) for stem in stems.split() for form in forms]


def cycled(values: Sequence[float], otherwise: AnyRule = None) -> Callable[[TensorSpec], AnyRule]:
    """These values repeatedly: limits, NaN and the like. Tensors of more than LITERAL_LIMIT elements follow
    `otherwise`."""

    def rule(this: TensorSpec) -> AnyRule:
        if this.size > LITERAL_LIMIT:
            return otherwise
        return Literal((list(values) * (this.size // len(values) + 1))[: this.size])

    return rule


def special(*values: float) -> Callable[[TensorSpec], AnyRule]:
    """These values repeatedly in floating tensors: signed zeros, infinities and NaN."""
    return lambda this: cycled(values)(this) if this.dtype in FLOATING else None


# A variance computed as a difference of squares loses its digits for numbers far from zero. For float64 there
# is no more precise truth; half precision has hardly a number in this range.
FAR_FROM_ZERO: Mapping[str, Mapping[str, AnyRule]] = {
    "wide": {"x": lambda this: uniform(100, 101) if this.dtype == "float32" else None}
}

# Integers that become equal when a float of fewer digits holds them.
_DENSE = {
    "int32": integers(2**24 - 1, 2**24 + 2),
    "int64": integers(2**53 - 1, 2**53 + 2),
}


def edges(
    *parameters: str, low: float = -3.0, high: float = 3.0, without: str = ""
) -> Mapping[str, Mapping[str, AnyRule]]:
    """Rules under value regimes for arguments whose usual rule lists numbers: NaN, infinities, all magnitudes
    and ties for floats. Wide integers differ by less than a float of too few digits can represent.
    `without` names regimes that keep the usual rule."""

    def of(regime: str) -> Callable[[TensorSpec], AnyRule]:
        def rule(this: TensorSpec) -> AnyRule:
            if this.dtype in FLOATING:
                return CHANGES[regime](Fill(UNIFORM, low, high, 0), this, Traits(EVERYTHING))
            return _DENSE.get(this.dtype) if regime == "wide" else None

        return rule

    regimes = [regime for regime in ("wide", "nan", "infinity", "exact") if regime not in without.split()]
    return {regime: dict.fromkeys(parameters, of(regime)) for regime in regimes}


def beside(y: object, otherwise: AnyRule = None) -> AnyRule:
    """Integers around the number y, so that comparisons meet it; `otherwise` if y is not a small integer."""
    whole = isinstance(y, int) or (isinstance(y, float) and y.is_integer())
    return integers(y - 2, y + 3) if whole and abs(y) < 100 else otherwise


def reals(rule: AnyRule) -> Callable[[TensorSpec], AnyRule]:
    """`rule` for floating and complex tensors; integers and bool keep their default."""
    return lambda this: None if this.dtype in INTEGER or this.dtype == "bool" else rule


# The absolute tolerance of 0.01 hides an error of 5% in results below 0.2, such as products and means of the
# default [-0.5, 0.5). These ranges give larger products and squares, or means.
FACTORS = reals(uniform(-2, 2))
UNCENTRED = reals(uniform(-0.5, 1.5))


def short_factors(this: TensorSpec) -> AnyRule:
    """FACTORS for products that sum few terms. Long sums are large enough with the default, and larger
    factors would only increase rounding errors of half precision and TF32."""
    return FACTORS if max(this.shape[-2:], default=1) <= 32 else None
