"""Values at which reports show faults of PyTorch, by value regime, beyond those of Paddle's tables."""

from math import inf, nan
from typing import Any

from assay.apis.arithmetic import WHOLE, dividend, signed_divisor
from assay.apis.sorting import asked, met
from assay.regimes import BOTH, row_of
from assay.rules import AnyRule, Fill, Literal, constant, increasing, integers, uniform
from assay.shared import MAGNITUDES, WITH_INFINITY
from assay.shorthand import LITERAL_LIMIT, cycled, special
from assay.spec import COMPLEX, FLOATING, INTEGER
from assay.torch_cases.bounds import TABLE
from assay.torch_cases.tables import known

__all__ = ["TABLE"]

SIGNED = INTEGER - {"uint8", "uint16", "uint32", "uint64"}


def under(names: str, regime: str, **rules: AnyRule) -> None:
    """Registers rules under a regime; `x` is the first parameter."""
    if "x" in rules:
        rules |= dict.fromkeys(("input", "self"), rules.pop("x"))
    for name in names.split():
        known(name, regimes=TABLE.get(name, {}).get("regimes", {}) | {regime: rules})


def _smallest(this: Any) -> Any:
    """The smallest integer beside others, for a divisor of -1."""
    if this.dtype not in SIGNED:
        return dividend(this)
    return cycled([-(2.0 ** (int(this.dtype[3:]) - 1)), 7, -7, 0, -5, 3])(this)


def _minus_one(this: Any, x: Any = None) -> Any:
    return cycled([-1, -3, -2])(this) if this.dtype in SIGNED else signed_divisor(this, x, this)


under(
    "floor_divide floor_divide_ __floordiv__ __ifloordiv__ remainder remainder_ __mod__ fmod fmod_ div div_",
    "exact",
    x=_smallest,
    other=_minus_one,
)


def _either(whole: tuple[float, ...], real: tuple[float, ...]) -> AnyRule:
    """These numbers, for integers or for floats."""
    return lambda this: None if this.dtype in COMPLEX else cycled(whole if this.dtype in WHOLE else real)


_POWER = _either((0, 2, 1, 3), (0.0, 2.0, -1.0, 0.5))
_BASE = _either((0, 0, 2, 1, 3), (0.0, 0.0, 2.0, 0.5, 1.0))
under("pow pow_ __pow__ float_power float_power_", "exact", x=_BASE, exponent=_POWER, other=_POWER)


def _plain(beta: float = 1) -> Any:
    """Finite factors where beta = 0 must hide what is not finite."""
    return None if beta else uniform()


def _of_zero(alpha: float = 1) -> str:
    return "" if alpha else "whether alpha = 0 hides NaN is not specified"


_SCALED = "addmm addmm_ baddbmm baddbmm_ addbmm addbmm_ addmv addmv_ addr addr_"
known(_SCALED, undefined=dict.fromkeys(("nan", "infinity"), _of_zero))
for _regime in ("nan", "infinity"):
    under(
        _SCALED,
        _regime,
        **dict.fromkeys("mat1 mat2 batch1 batch2 mat vec vec1 vec2".split(), _plain),
    )


def _lines(value: float) -> AnyRule:
    """Halves with a row and a column of this value."""

    def rule(this: Any) -> Any:
        if this.dtype not in FLOATING or this.ndim < 2 or this.size > LITERAL_LIMIT:
            return None
        row = max(1, this.shape[-1])
        return Literal([value if n < row or n % row == 0 else n * 5 % 8 / 2 - 1.75 for n in range(this.size)])

    return rule


under("normalize norm vector_norm", "exact", x=_lines(0.0))
under("cosine_similarity", "bulk", x1=_lines(0.0), x2=_lines(0.0))
under("nansum nanmean", "nan", x=_lines(nan))
under("nonzero argwhere", "nan", x=special(0.0, nan, -0.0, 0.0, 1.0, 0.0, 0.0))

# Integers that a float of fewer digits, or 32 bits, cannot tell apart.
_END = {"int32": 2**24, "int64": 2**53}


def _dense(this: Any) -> Any:
    return integers(_END[this.dtype] - 1, _END[this.dtype] + 2) if this.dtype in _END else None


def _one_of_them(this: Any) -> Any:
    return constant(_END[this.dtype]) if this.dtype in _END else None


under("isin", "wide", elements=_dense, test_elements=_one_of_them)
under("unique unique_consecutive", "wide", x=_dense)
under("bucketize", "exact", x=asked, boundaries=met)
known(
    "bucketize",
    input=lambda this: integers(-11, 12) if this.dtype in INTEGER else None,
    boundaries=lambda this: increasing(-9, 10) if this.dtype in INTEGER else increasing(),
)


def _ends_of_bins(this: Any, bins: Any = 10, min: float = 0, max: float = 0) -> Any:
    """The ends, the middle of the first bin, and beyond."""
    low, high = (-1.0, 1.0) if min == max else (min, max)
    inside = low + (high - low) / 2 / bins if isinstance(bins, int) and bins else low
    return special(high, inside, low, *((high + 1, low - 1) if min != max else ()))(this)


under("histc", "exact", x=_ends_of_bins)

# The ends of the range.
under("sinh sinh_ cosh cosh_", "wide", x=special(89.0, -89.25, 710.25, -710.45, 0.0, 0.3, -2.0, 15.0, -1e38))
under("exp2 exp2_", "wide", x=special(127.5, -126.5, 127.9, 1023.5, 1023.9, 0.0, -3.0, 20.5, -1e30))
under("erfcx", "wide", x=special(-9.25, 0.5, -9.0, 30.0, 1e10, -26.5, 0.0, -3.0))
under("square square_", "wide", x=special(1.75e19, -1.25e19, 1.25e154, 3.0, -1e-10, 0.0, 200.0))


def _moderate(this: Any) -> Any:
    """Complex numbers whose squares leave the range."""
    return Fill(MAGNITUDES, 2.0**-100, 2.0**125, BOTH) if this.dtype == "complex64" else None


under("abs absolute abs_", "wide", x=_moderate)


def _exponents(this: Any) -> Any:
    """Complex numbers whose exponential leaves the range of float32."""
    return Fill(MAGNITUDES, 2.0**-10, 2.0**9, BOTH) if this.dtype == "complex64" else None


def _infinite(this: Any) -> Any:
    return Fill(WITH_INFINITY, -0.5, 0.5, row_of(this)) if this.dtype in COMPLEX else None


def _finite(this: Any) -> Any:
    return uniform() if this.dtype in COMPLEX else None


def _squares(this: Any, p: Any = None, ord: Any = None) -> Any:
    """Numbers whose squares leave the range, though their norm does not."""
    top = {"float32": 2.0**80, "float64": 2.0**600}.get(this.dtype) if {p, ord} <= {None, 2, "fro"} else None
    return cycled([top, -1.5 * top, 1.0, 0.0, -3.0])(this) if top else None


under("sigmoid sigmoid_ expit tanh tanh_", "wide", x=_exponents)


def _by_parts(x: Any, alpha: float = 1) -> str:
    return "infinity" if getattr(x, "dtype", None) in COMPLEX and alpha == 1 else ""  # of tensors


_SUMS = "add add_ __add__ sub sub_ __sub__ subtract subtract_"
under(_SUMS, "infinity", x=_finite, other=_infinite)
known(_SUMS, traits={"whole": _by_parts})  # the bar accepts NaN for a complex infinity
under("norm vector_norm torch.linalg.norm", "wide", x=_squares, A=_squares)
under("ndtr", "wide", x=special(-1.5, -3.25, -5.5, -9.0, -13.0, -30.0, 0.0, 2.5, 9.0, -1e10))
# NaN beside numbers at which a kernel need not look at it.
_BESIDE = special(inf, nan, 0.0, -inf, 1.0, 2.5, nan)
_OF_GAMMA = "zeta gammainc gammaincc igamma igamma_ igammac igammac_"
under(_OF_GAMMA, "nan", x=special(nan, inf, nan, nan, 2.0), other=_BESIDE)
under("xlogy xlogy_ xlog1py", "nan", x=special(nan, inf, 0.0, nan, 2.0), other=_BESIDE)


def _exponents_of(input: Any = None, self: Any = None) -> Any:
    """Powers that fit the dtype of the numbers."""
    wide = getattr(input or self, "dtype", "") in ("float32", "float64")
    return integers(-100, 101) if wide else None


under("ldexp ldexp_", "exact", other=_exponents_of)
under("zeta", "infinity", x=special(2.0, 1.5, 4.0), other=special(inf, 1.0, 2.5, inf))

_NEGATIVE = special(-0.5, 3.5, -1.5, 0.25, -2.25, 40.0, -3.75)
under("lgamma lgamma_ gammaln digamma digamma_ psi", "exact", x=_NEGATIVE)


def _poles(this: Any, n: int = 1) -> Any:
    """Arguments below zero; at the poles only odd derivatives have a limit."""
    return special(-0.5, 3.5, -1.0, 0.25, -2.25, -3.0, 40.0)(this) if n % 2 else _NEGATIVE(this)


under("polygamma polygamma_", "exact", x=_poles)
known("hardshrink", input=uniform(-2, 2))  # Paddle's rule avoids the threshold
_CHEBYSHEV = "{0}_t {0}_u {0}_v {0}_w shifted_{0}_t shifted_{0}_u shifted_{0}_v shifted_{0}_w"


def _angle(n: Any) -> float:
    """The cosine of n times a rounded angle."""
    return max(1.0, 2.0 * abs(n)) if isinstance(n, int | float) else 16.0


known(_CHEBYSHEV.format("chebyshev_polynomial"), traits={"coordinates": _angle})
known(
    _CHEBYSHEV.format("chebyshev_polynomial")
    + " hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p",
    n=integers(0, 8),
)


def _segments(this: Any, x: Any, axis: int = 0) -> Any:
    """Lengths of segments that together have all rows."""
    count, rows = this.shape[-1] if this.shape else 1, x.shape[axis] if x.shape else 0
    return Literal([rows // count + (n < rows % count) for n in range(count)] * (this.size // max(1, count)))


def _bounds(this: Any, x: Any, axis: int = 0) -> Any:
    """The first rows of segments, and the end of the last one."""
    count, rows = this.shape[-1] if this.shape else 1, x.shape[axis] if x.shape else 0
    return Literal([n * rows // max(1, count - 1) for n in range(count)] * (this.size // max(1, count)))


known("segment_reduce", lengths=_segments, offsets=_bounds)
known("airy_ai", x=uniform(-5, 3))  # across its first zeros
known("zeta", **dict.fromkeys(("x", "input", "self"), uniform(1.1, 6)), other=uniform(0.1, 3))

# Certain draws, and impossible ones.
known(
    "torch.bernoulli torch.Tensor.bernoulli", **dict.fromkeys(("input", "self"), special(0.0, 0.3, 1.0, 0.7))
)


def _weights(this: Any, num_samples: int = 1) -> Any:
    """Every third weight is zero, if enough are left."""
    row = this.shape[-1] if this.shape else 1
    if row < 3 * num_samples + 3 or this.size > LITERAL_LIMIT:
        return increasing(0.05, 1.05)
    return Literal([0.0 if n % row % 3 == 0 else 0.05 + n % row / row for n in range(this.size)])


known("torch.multinomial torch.Tensor.multinomial", input=_weights, self=_weights)
