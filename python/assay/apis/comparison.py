"""Comparisons, logic and predicates; the results are bool."""

from math import inf, nan

from assay.apis.arithmetic import together
from assay.reference import torch
from assay.registry import api, same
from assay.rules import constant, integers, uniform
from assay.shorthand import IN_PLACE, PUBLIC, beside, cycled, edges, special, spread
from assay.spec import TensorSpec

FEW = integers(-2, 3)  # few values, so that many are equal
TRUTHS = integers(-1, 2)


def met(x, y):
    """Two tensors share few values; beside a number, x contains that number."""
    return FEW if isinstance(y, TensorSpec) else beside(y)


def comparison(stems, short):
    @api(*spread(stems, *PUBLIC), f"paddle.Tensor.__{short}__", x=met, y=FEW, regimes=edges("x", "y"))
    def compare(x, y, name=None, *, out=None):
        return getattr(torch, short)(*together(x, y))


comparison("equal eq", "eq")
comparison("not_equal ne", "ne")
comparison("less_than less lt", "lt")
comparison("less_equal le", "le")
comparison("greater_than greater gt", "gt")
comparison("greater_equal ge", "ge")


def one(this):
    return constant(1) if this.dtype in NEIGHBOURS else None


def around_one(*shares):
    """Values around 1, at these multiples of the relative tolerance."""

    def rule(this, rtol=1e-05):
        usable = this.dtype in NEIGHBOURS and isinstance(rtol, float) and 1e-6 < rtol < 0.1
        return cycled([1 + share * rtol for share in shares])(this) if usable else None

    return rule


SPECIAL = special(nan, 0.25, inf, -0.5, -inf, 0.0)
NEIGHBOURS = ("float32", "float64")  # dtypes that can represent 1 plus a share of the tolerance
NEAR = {"x": one, "y": around_one(0, 0.37, 2.71, 73, -0.37, -2.71)}


@api(*spread("isclose", *PUBLIC), x=FEW, y=FEW, regimes={**edges("x", "y"), "exact": NEAR})
def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """The documented formula. PyTorch's function rejects negative tolerances and different dtypes."""
    x, y = (tensor if tensor.is_complex() else tensor.double() for tensor in (x, y))
    close = (x == y) | ((x - y).abs() <= atol + rtol * y.abs())
    return close | (x.isnan() & y.isnan()) if equal_nan else close


def alike(this):
    """Equal tensors; small ones may differ."""
    return constant(1) if this.size > 4 else integers(0, 2)


UNLIKE = {"exact": {"x": integers(0, 2), "y": integers(0, 2)}}


@api(
    *spread("allclose", *PUBLIC),
    x=alike,
    y=alike,
    regimes={**UNLIKE, "wide": {"x": one, "y": around_one(2.71)}},
)
def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    return isclose(x, y, rtol, atol, equal_nan).all()


@api(*spread("equal_all", *PUBLIC), x=alike, y=alike, regimes=UNLIKE)
def equal_all(x, y, name=None):
    return torch.tensor(x.shape == y.shape and bool((x == y).all()))


def logical(stem):
    @api(*spread(stem, *PUBLIC, *IN_PLACE), x=TRUTHS, y=TRUTHS, regimes=edges("x", "y"))
    def combine(x, y, name=None, *, out=None):
        return getattr(torch, stem)(*together(x, y))


logical("logical_and")
logical("logical_or")
logical("logical_xor")


same("x, name=None, *, out=None", *spread("logical_not", *PUBLIC, *IN_PLACE), x=TRUTHS, regimes=edges("x"))


same("x, name=None", *spread("isnan isinf isfinite isneginf isposinf isreal", *PUBLIC), x=SPECIAL)
same("x", *spread("is_complex is_floating_point", *PUBLIC))


@api(*spread("is_integer", *PUBLIC))
def is_integer(x):
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


@api("paddle.is_tensor")
def is_tensor(x):
    return isinstance(x, torch.Tensor)


# Conversions of a tensor with one element to a Python value.


@api(*spread("bool nonzero", "paddle.Tensor.__{}__"), x=integers(0, 2))
def truth(x):
    return bool(x)


@api(*spread("int long index", "paddle.Tensor.__{}__"), x=uniform(-9, 9))
def as_python_int(x):
    return int(x)


@api("paddle.Tensor.__float__", x=uniform(-9, 9))
def as_python_float(x):
    return float(x)


@api("paddle.Tensor.__len__")
def length(x):
    return len(x)
