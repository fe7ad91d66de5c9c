"""Bitwise operations."""

from assay.reference import torch
from assay.registry import api, same
from assay.rules import integers
from assay.shorthand import IN_PLACE, PUBLIC, cycled, spread

DISTANCE = integers(0, 5)


def beyond(this):
    """The width of the dtype, less, and more: nothing is left."""
    width = int(this.dtype.lstrip("uint"))
    return cycled([width, width - 1, 1, width + 1, 2 * width - 1, 100], DISTANCE)


BEYOND = {"wide": {"y": beyond}}


for _stem in ("and", "or", "xor"):
    same(
        "x, y, out=None, name=None",
        *spread(f"bitwise_{_stem}", *PUBLIC, *IN_PLACE),
        *spread(f"{_stem} r{_stem}", "paddle.Tensor.__{}__"),
        to=f"torch.bitwise_{_stem}",
    )
same(
    "x, out=None, name=None",
    *spread("bitwise_not bitwise_invert", *PUBLIC, *IN_PLACE),
    "paddle.Tensor.__invert__",
    to="torch.bitwise_not",
)
_SHIFT = "x, y, is_arithmetic=True"


@api("paddle.Tensor.__lshift__", y=DISTANCE, regimes=BEYOND, signature=_SHIFT)
@api(*spread("bitwise_left_shift", *PUBLIC, *IN_PLACE), y=DISTANCE, regimes=BEYOND)
def left_shift(x, y, is_arithmetic=True, out=None, name=None):
    return torch.bitwise_left_shift(x, y)


@api("paddle.Tensor.__rshift__", y=DISTANCE, regimes=BEYOND, signature=_SHIFT)
@api(*spread("bitwise_right_shift", *PUBLIC, *IN_PLACE), y=DISTANCE, regimes=BEYOND)
def right_shift(x, y, is_arithmetic=True, out=None, name=None):
    """A logical shift of a negative number shifts zeros in: by one with the sign cleared, then by the
    rest."""
    if is_arithmetic:
        return torch.bitwise_right_shift(x, y)
    once = torch.bitwise_right_shift(x, 1) & torch.iinfo(x.dtype).max
    unsigned = x.dtype == torch.uint8
    return torch.where(y > 0, once >> (y - 1).clamp(min=0), x) if not unsigned else x >> y


@api("paddle.Tensor.__rlshift__", x=DISTANCE, regimes={"wide": {"x": beyond}})
def rlshift(x, y, is_arithmetic=True):
    return torch.bitwise_left_shift(torch.full_like(x, y), x)


@api("paddle.Tensor.__rrshift__", x=DISTANCE, regimes={"wide": {"x": beyond}})
def rrshift(x, y, is_arithmetic=True):
    return right_shift(torch.full_like(x, y), x, is_arithmetic)
