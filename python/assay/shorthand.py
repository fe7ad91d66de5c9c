"""Shorthand of the family files: many names at once, and value rules by example."""

from collections.abc import Callable, Mapping, Sequence

from assay.regimes import CHANGES, EVERYTHING, Traits
from assay.rules import UNIFORM, AnyRule, Fill, Literal, integers, uniform
from assay.spec import FLOATING, INTEGER, TensorSpec

PUBLIC = ("paddle.{}", "paddle.Tensor.{}")
IN_PLACE = ("paddle.{}_", "paddle.Tensor.{}_")
METHOD_IN_PLACE = ("paddle.Tensor.{}_",)
LINALG = ("paddle.linalg.{}", "paddle.Tensor.{}")

LITERAL_LIMIT = 4096


def spread(stems: str, *forms: str) -> list[str]:
    """Every stem in every form: spread("abs neg", *PUBLIC) is paddle.abs, paddle.Tensor.abs, …"""
    return [form.format(stem) for stem in stems.split() for form in forms]


def cycled(values: Sequence[float], otherwise: AnyRule = None) -> Callable[[TensorSpec], AnyRule]:
    """These values over and over: limits, NaN and the like. Large tensors, where a list of values
    would cost more than the call, follow `otherwise`."""

    def rule(this: TensorSpec) -> AnyRule:
        if this.size > LITERAL_LIMIT:
            return otherwise
        return Literal((list(values) * (this.size // len(values) + 1))[: this.size])

    return rule


def special(*values: float) -> Callable[[TensorSpec], AnyRule]:
    """These values over and over in floating tensors, which know zeros with signs, infinities and NaN."""
    return lambda this: cycled(values)(this) if this.dtype in FLOATING else None


# A variance that is taken as a difference of squares has few digits left of numbers far from zero. Of float64
# nothing is known better, and half precision has hardly a number between these.
FAR_FROM_ZERO: Mapping[str, Mapping[str, AnyRule]] = {
    "wide": {"x": lambda this: uniform(100, 101) if this.dtype == "float32" else None}
}

# Whole numbers that floats of fewer digits take for one.
_DENSE = {
    "int32": integers(2**24 - 1, 2**24 + 2),
    "int64": integers(2**53 - 1, 2**53 + 2),
}


def edges(
    *parameters: str, low: float = -3.0, high: float = 3.0, without: str = ""
) -> Mapping[str, Mapping[str, AnyRule]]:
    """Regimes for arguments whose usual rule is a list of numbers, which would leave them as they are: NaN,
    infinities, all magnitudes and ties among floats; under wide values whole numbers that a float of too few
    digits cannot tell apart. `without` names regimes that stay as they are."""

    def of(regime: str) -> Callable[[TensorSpec], AnyRule]:
        def rule(this: TensorSpec) -> AnyRule:
            if this.dtype in FLOATING:
                return CHANGES[regime](Fill(UNIFORM, low, high, 0), this, Traits(EVERYTHING))
            return _DENSE.get(this.dtype) if regime == "wide" else None

        return rule

    regimes = [regime for regime in ("wide", "nan", "infinity", "exact") if regime not in without.split()]
    return {regime: dict.fromkeys(parameters, of(regime)) for regime in regimes}


def beside(y: object, otherwise: AnyRule = None) -> AnyRule:
    """Whole numbers around the number y, so that comparisons meet it; `otherwise` if y is no such number."""
    whole = isinstance(y, int) or (isinstance(y, float) and y.is_integer())
    return integers(y - 2, y + 3) if whole and abs(y) < 100 else otherwise


def reals(rule: AnyRule) -> Callable[[TensorSpec], AnyRule]:
    """`rule` for floating and complex tensors; whole numbers and bool keep their default."""
    return lambda this: None if this.dtype in INTEGER or this.dtype == "bool" else rule


# The absolute tolerance of 0.01 hides a twentieth more or less of any result below 0.25, as products
# and means of the default's [-0.5, 0.5) are. These keep products and squares, or means, well above it.
FACTORS = reals(uniform(-2, 2))
UNCENTRED = reals(uniform(-0.5, 1.5))


def short_factors(this: TensorSpec) -> AnyRule:
    """FACTORS of products that are summed over few places; long sums are large enough by themselves, and
    would only grow the rounding errors of half precision and TF32."""
    return FACTORS if max(this.shape[-2:], default=1) <= 32 else None
