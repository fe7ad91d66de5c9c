"""Elementwise mathematics of two tensors, or of a tensor and a number."""

import math
from functools import reduce

from assay import orders
from assay.arguments import widened
from assay.known_deviation import avoids, follows
from assay.orders import np
from assay.reference import on_host, torch
from assay.regimes import HALF, POSITIVE
from assay.registry import api, same
from assay.rules import Fill, halves, integers, positive, uniform
from assay.shared import FEW_TERMS, MAGNITUDES, MOST_ELEMENTS
from assay.shorthand import FACTORS, IN_PLACE, METHOD_IN_PLACE, PUBLIC, edges, special, spread
from assay.spec import FLOATING, INTEGER, TensorSpec


def together(x, y):
    """x and y, promoted as Paddle does.

    Paddle is documented to reject tensors of different dtypes, except 0-d tensors, two floating dtypes, or a
    complex one; and it has no complex half precision. Both operands get the wider dtype before the
    computation, as in Paddle: torch.pow's gradient would subtract 1 from a float16 exponent in float16.
    """
    if isinstance(y, complex) and x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    if isinstance(y, torch.Tensor) and x.dtype != y.dtype and x.ndim and y.ndim:
        floating = x.is_floating_point() and y.is_floating_point()
        if not (floating or x.is_complex() or y.is_complex()):
            raise TypeError(f"{x.dtype} and {y.dtype} cannot be promoted")
        wider = torch.promote_types(x.dtype, y.dtype)
        return x.to(wider), y.to(wider)
    return x, y


def constant(x):
    """x without a gradient."""
    return x.detach() if isinstance(x, torch.Tensor) else x


def divisor(this):
    return positive(0.5, 2) if this.dtype not in WHOLE else integers(1, 9)


def signed_divisor(this, x, y):
    """Both signs, and zero for floats. An integer or complex division by zero is undefined."""
    if this.dtype in WHOLE:
        return integers(1, 5) if this.dtype.startswith(("u", "b")) else integers(-4, 0)
    if this.dtype in HALF:
        return integers(-12, 13)
    return halves(0.5, 3.5) if any(is_complex(value) for value in (this, x, y)) else halves()


def is_complex(value):
    return isinstance(value, complex) or getattr(value, "dtype", "").startswith("complex")


def dividend(this):
    """Whole numbers of more digits than a quotient in half precision keeps."""
    return integers(-(2**12), 2**12 + 1) if this.dtype in HALF else None


def as_divisors(*parameters):
    """Rules for the operands of a division under `exact`, and for integer divisors, which are never zero,
    under `wide`."""
    exact = dict.fromkeys(("x", "y"), dividend) | dict.fromkeys(parameters, signed_divisor)
    wide = dict.fromkeys(parameters, lambda this: divisor(this) if this.dtype in WHOLE else None)
    return {"exact": exact, "wide": wide}


WHOLE = INTEGER | {"bool"}
BETWEEN = {"infinity": "the result between two infinities depends on the formula"}
DIVIDEND = uniform(-20, 20)
BASE = positive(0.5, 2)


@api(*spread("add", *PUBLIC, *METHOD_IN_PLACE), "paddle.Tensor.__add__", "paddle.Tensor.__radd__")
def add(x, y, name=None, *, alpha=1, out=None):
    return torch.add(*together(x, y), alpha=alpha)


@api(*spread("subtract sub", *PUBLIC, *IN_PLACE), "paddle.Tensor.__sub__")
def subtract(x, y, name=None, *, alpha=1, out=None):
    return torch.add(*together(x, y), alpha=-alpha)


@api("paddle.Tensor.__rsub__")
def rsub(x, y):
    x, y = together(x, y)
    return y - x


@api(
    *spread("multiply", *PUBLIC, *IN_PLACE),
    *spread("mul", *PUBLIC, *METHOD_IN_PLACE),
    *spread("mul rmul", "paddle.Tensor.__{}__"),
    x=FACTORS,
    y=FACTORS,
)
def multiply(x, y, name=None, *, out=None):
    return torch.mul(*together(x, y))


@api(
    *spread("divide div", *PUBLIC, *IN_PLACE),
    *spread("truediv div", "paddle.Tensor.__{}__"),
    x=FACTORS,
    y=divisor,
    regimes=as_divisors("y"),
    traits={"whole": lambda rounding_mode=None: "exact" if rounding_mode else False},
)
def divide(x, y, name=None, *, rounding_mode=None, out=None):
    x, y = together(x, y)
    if not rounding_mode:
        return torch.div(x, y)
    return torch.div(widened(x), y, rounding_mode=rounding_mode).to(x.dtype)


@api(*spread("rtruediv rdiv", "paddle.Tensor.__{}__"), x=divisor, regimes=as_divisors("x"))
def rtruediv(x, y):
    x, y = together(x, y)
    return y / x


@api(
    *spread("floor_divide", *PUBLIC, *IN_PLACE),
    "paddle.Tensor.__floordiv__",
    x=DIVIDEND,
    y=divisor,
    regimes=as_divisors("y"),
    traits={"whole": "exact"},
)
def floor_divide(x, y, name=None, *, out=None):
    """A step function; PyTorch rejects its differentiation, and rounds on the way in half precision."""
    x, y = map(constant, together(x, y))
    return torch.floor_divide(widened(x), y).to(x.dtype)


LOST = (
    "a quotient with more digits than the dtype holds has no defined remainder, and the dividend is changed"
)
LOST_FROM = 2.0**22
DEFINED_TO = 2.0**9


def left_over(found, x, y, expected=False):
    """The remainder; for some quotients that are too large only what holds for all: it is a number not beyond
    the divisor and has its sign. `expected`: state that, because PyTorch's own is NaN if the quotient
    overflows."""
    if not hasattr(found, "detach") or not found.ndim or "float" not in str(found.dtype):
        return found
    if math.prod(found.shape) > MOST_ELEMENTS:
        return found
    rest, dividend, over = (
        orders.array_of(part) if hasattr(part, "detach") else part for part in (found, x, y)
    )
    with np.errstate(all="ignore"):
        quotient = np.abs(np.where(over == 0, 0.0, np.divide(dividend, over, dtype="float64")))
        finite = np.isfinite(dividend).all() and np.isfinite(over).all()
        if not finite or not (quotient > LOST_FROM).any():
            return found
        small = quotient < DEFINED_TO
        kept = (np.abs(rest) <= np.abs(over)) & (rest * np.sign(over) >= 0)
    parts = {"within the divisor": expected or bool(np.where(np.asarray(over) == 0, True, kept).all())}
    if "bfloat16" not in str(found.dtype):
        parts["of small quotients"] = np.where(small, rest, 0).astype(rest.dtype)
    return on_host(parts)


@api("paddle.Tensor.__rfloordiv__", x=divisor, regimes=as_divisors("x"))
def rfloordiv(x, y):
    return constant(y) // constant(x)


REMAINDER = {"x": DIVIDEND, "y": divisor, "regimes": as_divisors("y")}


@api(*spread("remainder mod floor_mod", *IN_PLACE), undefined={"wide": LOST}, **REMAINDER)
@api(
    *spread("remainder mod floor_mod", *PUBLIC),
    "paddle.Tensor.__mod__",
    shown=lambda found, given: left_over(found, given["x"], given["y"]),
    **REMAINDER,
)
def remainder(x, y, name=None, *, out=None):
    return left_over(torch.remainder(*together(x, y)), x, y, expected=True)


@api(
    "paddle.Tensor.__rmod__",
    x=divisor,
    y=DIVIDEND,
    regimes=as_divisors("x"),
    shown=lambda found, given: left_over(found, given["y"], given["x"]),
)
def rmod(x, y):
    y = (
        y if isinstance(y, torch.Tensor) else torch.full_like(x, y)
    )  # torch.remainder(number, x) has no gradient
    return left_over(torch.remainder(y, x), y, x, expected=True)


def base_of(x, y):
    """Negative bases only for integer exponents, and no values near zero for negative exponents."""
    if x.dtype in WHOLE:
        return integers(1, 5)
    whole = not isinstance(y, TensorSpec) and y == int(y.real) and y.real >= 0
    return uniform(-2, 2) if whole else BASE


def exponent_of(x, y, this):
    return integers(0, 4) if this.dtype in WHOLE else uniform(-2, 2)


def beyond_32_bits(**reaches):
    """Rules under `wide`: integers of 64 bits within these reaches, whose products leave 32 bits."""

    def rule(low, high):
        return lambda this: integers(low, high) if this.dtype == "int64" else None

    return {"wide": {name: rule(*reach) for name, reach in reaches.items()}}


@api(
    *spread("pow", *PUBLIC, *IN_PLACE),
    "paddle.Tensor.__pow__",
    x=base_of,
    y=exponent_of,
    regimes=beyond_32_bits(x=(-9, 10), y=(0, 19)),
)
def pow(x, y, name=None, *, out=None):
    return torch.pow(*together(x, y))


@api("paddle.Tensor.__rpow__", x=lambda x: integers(0, 4) if x.dtype in WHOLE else uniform(-2, 2))
def rpow(x, y):
    return torch.pow(y, x)


# Operands of maximum and minimum are never equal, because the gradient of a tie is not specified.
UNLIKE = {
    "x": lambda this: integers(-2, 3) if this.dtype in FLOATING else None,
    "y": lambda this: uniform(0.1, 0.9) if this.dtype in FLOATING else None,
    "regimes": edges("x", "y", without="exact"),
}


def _promoted(name, signature="x, y, name=None", **rules):
    """torch's function of the same name, with promoted operands."""

    @api(*spread(name, *PUBLIC), signature=signature, **rules)
    def call(x, y):
        return getattr(torch, name)(*together(x, y))


for _name in ("maximum", "minimum"):
    _promoted(_name, "x, y, name=None, *, out=None", **UNLIKE)
for _name in ("fmax", "fmin"):
    _promoted(_name, **UNLIKE)


@api(*spread("lerp", *PUBLIC, *METHOD_IN_PLACE), x=FACTORS, y=FACTORS, weight=FACTORS, undefined=BETWEEN)
def lerp(x, y, weight, name=None):
    return torch.lerp(x, y, weight)


# Zeros have signs.
ZEROS_AS_SIGNS = {"bulk": {"x": special(1.5, -2.0), "y": special(-0.0, 0.0, -0.0, 0.0, -math.inf)}}


@api(*spread("copysign", *PUBLIC, *IN_PLACE), regimes=ZEROS_AS_SIGNS)
def copysign(x, y, name=None):
    """Paddle keeps integer dtypes; PyTorch returns floats."""
    if x.is_floating_point():
        return torch.copysign(x, y).to(x.dtype)
    if x.dtype == torch.bool:  # bool has no sign
        return torch.broadcast_tensors(x, y)[0].clone()
    return torch.where(torch.signbit(y), -abs(x), abs(x))


@api("paddle.add_n")
def add_n(inputs, name=None):
    if isinstance(inputs, torch.Tensor):
        return inputs.clone()
    if len({x.dtype for x in inputs}) > 1:
        raise TypeError("add_n requires tensors of one dtype")
    half = inputs[0].dtype in (torch.float16, torch.bfloat16)
    total = reduce(torch.add, [x.float() for x in inputs] if half else inputs)
    return total.to(inputs[0].dtype)


@api(
    *spread("scale", *PUBLIC, *METHOD_IN_PLACE),
    scale=uniform(0.5, 2),
    known_deviation=follows(
        "for integers, the factor and the bias are truncated to integers first",
        "paddle-scale-whole-numbers",
    ),
)
def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """For integers, scale and bias are truncated, like the attributes of the kernel."""
    if isinstance(scale, torch.Tensor):
        scale = scale.item()
    if not (x.is_floating_point() or x.is_complex()):
        scale, bias = int(scale), int(bias)
    out = x * scale + bias if bias_after_scale else (x + bias) * scale
    return getattr(torch, act)(out) if act else out


@api(
    *spread("clip clamp", *PUBLIC, *METHOD_IN_PLACE),
    x=uniform(-3, 3),
    min=uniform(-1, -0.5),
    max=uniform(1, 2),
    # Bounds in the wrong order, NaN and ties may be rejected.
    regimes=dict.fromkeys(
        ("wide", "nan", "infinity", "exact"), {"min": uniform(-1, -0.5), "max": uniform(1, 2)}
    ),
)
def clip(x, min=None, max=None, name=None, *, out=None):
    """Bounds are numbers or tensors with one element."""
    low, high = (bound.item() if isinstance(bound, torch.Tensor) else bound for bound in (min, max))
    return x.clone() if low is None and high is None else torch.clamp(x, low, high)


# Both frameworks divide gradients by x² + y². At 1e-200 Paddle's is infinite and PyTorch's 0; the exact value
# 5e199 has no float64 truth.
SQUARES = {"wide": (2.0**-60, 2.0**60)}


ON_THE_CUT = {"x": special(0.0, -0.0, 0.0, -0.0, -math.inf), "y": special(1.0, 1.0, -1.0, -1.0, -math.inf)}


def _of_floats(name, *forms, dtype="float32", **options):
    """torch's function of the same name; integers become this dtype."""

    @api(*spread(name, *PUBLIC, *forms), signature="x, y, name=None", **options)
    def call(x, y):
        return getattr(torch, name)(
            *(
                each if each.is_floating_point() or each.is_complex() else each.to(getattr(torch, dtype))
                for each in together(x, y)
            )
        )


_of_floats("atan2", dtype="float64", traits=SQUARES, regimes={"bulk": ON_THE_CUT})  # as documented
_of_floats("hypot", *IN_PLACE)
_of_floats("logaddexp", x=uniform(-5, 5), y=uniform(-5, 5))


@api(
    *spread("heaviside", *PUBLIC),
    x=integers(-1, 2),
    regimes={"nan": {"x": special(math.nan, 0.0, -1.0, 2.0)}},
)
def heaviside(x, y, name=None):
    """PyTorch has no gradient for it, and gives 0 for NaN."""
    x, y = torch.broadcast_tensors(x, y)
    return torch.where(x == 0, y, torch.where(x.isnan(), x, (x > 0).to(x.dtype)))


@api(*spread("nextafter", *PUBLIC))
def nextafter(x, y, name=None):
    x, y = together(x, y)
    dtype = torch.result_type(x, y)
    return torch.nextafter(x.detach().to(dtype), y.detach().to(dtype))


@api(*spread("ldexp", *PUBLIC, *IN_PLACE), x=uniform(-8, 8), y=integers(-3, 4))
def ldexp(x, y, name=None):
    """float32, or float64 if x or y is float64."""
    dtype = torch.float64 if torch.float64 in (x.dtype, y.dtype) else torch.float32
    return torch.mul(x.to(dtype), torch.exp2(y.to(dtype)))


ABOVE_ZERO = Fill(MAGNITUDES, 1.0, 2.0**62, POSITIVE)


same(
    "x, y, name=None",
    *spread("gcd", *PUBLIC, *IN_PLACE),
    regimes={"wide": {"x": ABOVE_ZERO, "y": ABOVE_ZERO}},
    known_deviation=avoids(
        "wide inputs are positive; with the smallest integer the call never returns",
        "paddle-gcd-hang",
    ),
)


same(
    "x, y, name=None",
    *spread("lcm", *PUBLIC, *IN_PLACE),
    x=integers(-100, 100),
    y=integers(-100, 100),
    regimes=beyond_32_bits(x=(-(2**20), 2**20), y=(-(2**20), 2**20)),
)


# Series whose terms are rounded. A GPU's float64 uses other series and differs by 10 ulps.
SERIES = {"terms": FEW_TERMS + 1}


def _incomplete_gamma(name):
    @api(
        *spread(name, *PUBLIC, *IN_PLACE),
        x=positive(0.5, 3),
        y=positive(0.5, 3),
        traits=SERIES,
        signature="x, y, name=None",
        known_deviation=follows("no gradient with respect to the first argument; PyTorch has none either"),
    )
    def call(x, y):
        return getattr(torch.special, name)(x.detach(), y)


_incomplete_gamma("gammainc")
_incomplete_gamma("gammaincc")
