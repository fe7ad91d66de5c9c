"""Bitwise operations."""

from assay.reference import torch
from assay.registry import api
from assay.rules import integers
from assay.shorthand import IN_PLACE, PUBLIC, cycled, spread

DISTANCE = integers(0, 5)


def beyond(this):
    """The width of the dtype, less, and more: nothing is left."""
    width = int(this.dtype.lstrip("uint"))
    return cycled([width, width - 1, 1, width + 1, 2 * width - 1, 100], DISTANCE)


BEYOND = {"wide": {"y": beyond}}


def bitwise(stem):
    @api(*spread(f"bitwise_{stem}", *PUBLIC, *IN_PLACE), *spread(f"{stem} r{stem}", "paddle.Tensor.__{}__"))
    def combine(x, y, out=None, name=None):
        return getattr(torch, f"bitwise_{stem}")(x, y)


bitwise("and")
bitwise("or")
bitwise("xor")


@api(*spread("bitwise_not bitwise_invert", *PUBLIC, *IN_PLACE), "paddle.Tensor.__invert__")
def bitwise_not(x, out=None, name=None):
    return torch.bitwise_not(x)


@api(*spread("bitwise_left_shift", *PUBLIC, *IN_PLACE), y=DISTANCE, regimes=BEYOND)
def left_shift(x, y, is_arithmetic=True, out=None, name=None):
    return torch.bitwise_left_shift(x, y)


@api(*spread("bitwise_right_shift", *PUBLIC, *IN_PLACE), y=DISTANCE, regimes=BEYOND)
def right_shift(x, y, is_arithmetic=True, out=None, name=None):
    """A logical shift of a negative number shifts zeros in: by one with the sign cleared, then by the
    rest."""
    if is_arithmetic:
        return torch.bitwise_right_shift(x, y)
    once = torch.bitwise_right_shift(x, 1) & torch.iinfo(x.dtype).max
    unsigned = x.dtype == torch.uint8
    return torch.where(y > 0, once >> (y - 1).clamp(min=0), x) if not unsigned else x >> y


@api("paddle.Tensor.__lshift__", y=DISTANCE, regimes=BEYOND)
def lshift(x, y, is_arithmetic=True):
    return torch.bitwise_left_shift(x, y)


@api("paddle.Tensor.__rshift__", y=DISTANCE, regimes=BEYOND)
def rshift(x, y, is_arithmetic=True):
    return right_shift(x, y, is_arithmetic)


@api("paddle.Tensor.__rlshift__", x=DISTANCE, regimes={"wide": {"x": beyond}})
def rlshift(x, y, is_arithmetic=True):
    return torch.bitwise_left_shift(torch.full_like(x, y), x)


@api("paddle.Tensor.__rrshift__", x=DISTANCE, regimes={"wide": {"x": beyond}})
def rrshift(x, y, is_arithmetic=True):
    return right_shift(torch.full_like(x, y), x, is_arithmetic)
