"""Elementwise mathematics of one tensor."""

import math

from assay.reference import torch
from assay.registry import api, same
from assay.rules import increasing, integers, positive, uniform
from assay.shorthand import FACTORS, IN_PLACE, METHOD_IN_PLACE, PUBLIC, cycled, edges, special, spread

# Wide enough for the function's shape.
AROUND_ZERO = uniform(-3, 3)
INSIDE_ONE = uniform(-0.9, 0.9)
ABOVE_ZERO = positive(0.2, 5)
ABOVE_ONE = uniform(1.1, 5)
# Both lanes have the same input bits, so a step function of the input cannot differ.
STEPS = uniform(-5, 5)


DIRECT = {"direct": True}
# Sums of exponentials, logarithms or series have the absolute precision of 1.
NEAR_ONE = {"near_one": 0.5, "near_one_back": 1.0}
SERIES = {"near_one": 1.0, "near_one_back": 2.0}


# Values at 0, below 0 and at infinity for functions with positive usual values.
BEYOND = edges("x", without="nan wide")


# Where exponentials leave the range of float32 and float64, and others.
OTHERS = (0.0, 0.3, -2.0, 15.0, -30.0, 60.0, -(2.0**-30), 2.0**40, 1e-38, -1e38)
NEAR_88 = {"wide": {"x": special(88.5, -88.5, 88.7, -88.7, 709.5, -709.5, 709.75, *OTHERS)}}
NEAR_89 = {"wide": {"x": special(89.0, -89.0, 89.25, -89.25, 709.5, -709.5, *OTHERS)}}
NEAR_91 = {"wide": {"x": special(90.0, -91.5, 713.0, -713.0, *OTHERS)}}
WHOLE = {"whole": True}


def unary(stems, *forms, x=None, traits=None, regimes=None):
    """Functions with PyTorch's name and one tensor argument."""
    same("x, name=None", *spread(stems, *forms), x=x, traits=traits, regimes=regimes)


unary("abs neg conj angle", *PUBLIC)
unary("signbit", *PUBLIC, regimes={"bulk": {"x": special(-0.0, 0.0, -math.inf, math.inf)}})
unary("square", *PUBLIC, *IN_PLACE, x=FACTORS)
unary("negative positive", "paddle.{}")
unary("abs neg", *IN_PLACE)
unary("rad2deg", *PUBLIC, x=AROUND_ZERO)
unary("sinc", *PUBLIC, *IN_PLACE, x=AROUND_ZERO, traits=NEAR_ONE)
unary("deg2rad", *PUBLIC, x=uniform(-360, 360))
unary("sin cos atan asinh", *PUBLIC, *IN_PLACE, x=AROUND_ZERO, traits=DIRECT)
# 1 - tanh² doubles the error of 5 ulps of Paddle's tanh.
unary("tanh", *PUBLIC, *IN_PLACE, x=AROUND_ZERO, traits={"near_one_back": 1.0})
unary("expm1", *PUBLIC, "paddle.{}_", x=AROUND_ZERO, regimes=NEAR_88)
unary("erf", *PUBLIC, "paddle.{}_", x=AROUND_ZERO)
unary("exp", *PUBLIC, *METHOD_IN_PLACE, x=AROUND_ZERO, traits=DIRECT, regimes=NEAR_88)
unary("sigmoid", *PUBLIC, *METHOD_IN_PLACE, x=AROUND_ZERO, traits=DIRECT)
unary("tan", *PUBLIC, *IN_PLACE, x=uniform(-1.2, 1.2))
unary("asin acos atanh", *PUBLIC, *IN_PLACE, x=INSIDE_ONE)
unary("erfinv", *PUBLIC, *METHOD_IN_PLACE, x=INSIDE_ONE, traits=SERIES)
unary("acosh", *PUBLIC, *IN_PLACE, x=ABOVE_ONE)
unary("log log2 log10 log1p", *PUBLIC, *IN_PLACE, x=ABOVE_ZERO, regimes=BEYOND)
unary("lgamma", *PUBLIC, *IN_PLACE, x=ABOVE_ZERO, traits=NEAR_ONE)
# Kernels subtract up to ten reciprocals from log(10).
unary("digamma", *PUBLIC, *IN_PLACE, x=ABOVE_ZERO, traits=SERIES)
unary("sqrt rsqrt reciprocal", *PUBLIC, *METHOD_IN_PLACE, x=ABOVE_ZERO, regimes=BEYOND)
unary("floor ceil", *PUBLIC, *METHOD_IN_PLACE, x=STEPS, traits=WHOLE)
same("input, name=None", *spread("trunc", *PUBLIC, *IN_PLACE), input=STEPS, traits=WHOLE)


def hyperbolic(name):
    """In float64, because PyTorch's function overflows too early."""

    @api(
        *spread(name, *PUBLIC, *IN_PLACE),
        x=AROUND_ZERO,
        traits=DIRECT,
        regimes=NEAR_89,
        signature="x, name=None",
    )
    def call(x):
        function = getattr(torch, name)
        return function(x.double()).to(x.dtype) if x.is_floating_point() else function(x)


hyperbolic("sinh")
hyperbolic("cosh")


for _name, _function in (("neg", "neg"), ("pos", "positive"), ("abs", "abs")):
    same("var", f"paddle.Tensor.__{_name}__", to=f"torch.{_function}")


@api(*spread("sign sgn", *PUBLIC))
def sign(x, name=None, *, out=None):
    """Includes complex numbers, like torch.sgn. The sign of NaN is NaN, as in NumPy; PyTorch returns 0."""
    found = torch.sgn(x)
    return torch.where(torch.isnan(x), x, found) if x.is_floating_point() else found


@api(*spread("frac", *PUBLIC, *IN_PLACE), x=STEPS)
def frac(x, name=None, *, out=None):
    """Includes integers, which PyTorch rejects."""
    return x - torch.trunc(x)


same("x, name=None", *spread("gammaln", *PUBLIC, *IN_PLACE), to="torch.lgamma", x=ABOVE_ZERO, traits=NEAR_ONE)


same("x, name=None", *spread("i0e", *PUBLIC), home="torch.special", x=AROUND_ZERO, traits=SERIES)


def _bessel(order, x):
    """PyTorch's kernels multiply by exp(x), which overflows before the result does."""
    function = (torch.i0, torch.special.i1)[order]
    if x.dtype not in (torch.float32, torch.float64):
        return function(x)
    with torch.no_grad():
        root = torch.exp(x.abs() / 2)
        i0, i1 = (scaled(x) * root * root for scaled in (torch.special.i0e, torch.special.i1e))
        value, slope = ((i0, i1), (i1, i0 - i1 / x))[order]
        far = function(x).isinf() & value.isfinite()
        value, slope = torch.where(far, value, 0), torch.where(far, slope, 0)
    return torch.where(far, value + (x - x.detach()) * slope, function(torch.where(far, 0, x)))


@api(*spread("i0", *PUBLIC, *IN_PLACE), x=AROUND_ZERO, traits=SERIES, regimes=NEAR_91)
def i0(x, name=None):
    return _bessel(0, x)


@api(*spread("i1", *PUBLIC), x=AROUND_ZERO, traits=SERIES, regimes=NEAR_91)
def i1(x, name=None):
    return _bessel(1, x)


same("x, name=None", *spread("i1e", *PUBLIC), home="torch.special", x=AROUND_ZERO, traits=SERIES)


@api(*spread("polygamma", *PUBLIC, *IN_PLACE), x=ABOVE_ZERO, traits=NEAR_ONE)
def polygamma(x, n, name=None):
    return torch.polygamma(n, x)


same(
    "x, p, name=None",
    *spread("multigammaln", *PUBLIC, *IN_PLACE),
    home="torch.special",
    x=uniform(lambda p: p, lambda p: p + 3),
    traits=NEAR_ONE,
    undefined={"wide": "the function is undefined below (p - 1) / 2, and its terms have poles"},
)


@api(
    *spread("round", *PUBLIC, *METHOD_IN_PLACE),
    # With decimals the rounded x · 10^decimals may differ; integers do not.
    x=lambda decimals=0: integers(-50, 50) if decimals else STEPS,
    traits={"whole": lambda decimals=0: not decimals},
)
def round(x, decimals=0, name=None):
    if x.is_complex():
        return torch.complex(round(x.real, decimals), round(x.imag, decimals))
    return torch.round(x, decimals=decimals)


def _around(this, eps=None):
    """Around eps, and 1 - eps if the dtype holds that, but not so close that its rounding decides."""
    if not eps or eps >= 0.3:
        return uniform(0.1, 0.9)
    held = eps > 2**12 * {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24}.get(this.dtype, 0)
    beyond = 1 - eps / 2 if held else 0.6
    return cycled([eps / 2, 0.5, beyond, 0.4], increasing(1.5 * eps, 0.6))


@api(*spread("logit", *PUBLIC, *IN_PLACE), x=_around)
def logit(x, eps=None, name=None):
    return torch.logit(x, eps or None)


@api(*spread("stanh", *PUBLIC), x=AROUND_ZERO, traits=NEAR_ONE)
def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    return scale_b * torch.tanh(scale_a * x)


@api(
    *spread("frexp", *PUBLIC),
    x=STEPS,
    undefined={
        "nan": "C leaves the exponent of NaN unspecified",
        "infinity": "C leaves the exponent of infinity unspecified",
        "wide": "the gradient is divided by a power of two that underflows",
    },
)
def frexp(x, name=None):
    """Paddle returns the exponent in x's dtype, PyTorch as int32."""
    mantissa, exponent = torch.frexp(x.float() if x.dtype == torch.float16 else x)
    return mantissa.to(x.dtype), exponent.to(x.dtype)


same(
    "x, nan=0.0, posinf=None, neginf=None, name=None",
    *spread("nan_to_num", *PUBLIC, *IN_PLACE),
    x=cycled([float("nan"), 0.25, float("inf"), -0.5, float("-inf")]),
    equal="bits",  # the largest number of the dtype is that of no wider one
)


@api("paddle.increment", x=integers(-9, 9), changes="x")
def increment(x, value=1.0, name=None):
    return (x + value).to(x.dtype)
