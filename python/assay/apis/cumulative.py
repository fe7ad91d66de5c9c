"""Running sums, products and extremes; differences and integrals of neighbours."""

from assay.apis.reduction import PRODUCTS, factors
from assay.apis.sorting import ALL
from assay.arguments import as_dtype, as_int, in_float32
from assay.reference import torch
from assay.registry import api, same
from assay.rules import integers, positive
from assay.shorthand import FACTORS, IN_PLACE, PUBLIC, reals, spread

AXIS = integers(0, lambda x: max(x.ndim, 1))


def along(x, axis):
    """`x` and the axis to run along; flattened if no axis is given."""
    return (x.reshape(-1), 0) if axis is None else (x, as_int(axis))


# Longer running sums have large rounding errors where the sum returns to 0.
LONG = 100_000


@api(
    *spread("cumsum", *PUBLIC, *IN_PLACE),
    # Integers have exact sums, but upstream gradients are not integers.
    x=reals(lambda this: integers(-4, 5) if this.size > LONG else None),
    axis=AXIS,
    grad=lambda x: x.size <= 10 * LONG,
)
def cumsum(x, axis=None, dtype=None, name=None, *, out=None):
    return torch.cumsum(*along(x, axis), dtype=as_dtype(dtype))


@api(*spread("cumprod", *PUBLIC, *IN_PLACE), x=factors, dim=AXIS, regimes=PRODUCTS)
def cumprod(x, dim=None, *, dtype=None, out=None, name=None):
    row, axis = along(x.to(as_dtype(dtype) or x.dtype), dim)
    return in_float32(lambda row: torch.cumprod(row, axis, dtype=row.dtype), row)


@api(*spread("logcumsumexp", *PUBLIC))
def logcumsumexp(x, axis=None, dtype=None, name=None):
    dtype = as_dtype(dtype) or (x.dtype if x.is_floating_point() else torch.float32)
    row, axis = along(x.to(dtype), axis)
    return in_float32(lambda row: torch.logcumsumexp(row, axis), row)


def _extremes(name):
    @api(*spread(name, *PUBLIC), x=ALL, signature="x, axis=None, dtype='int64', name=None")
    def call(x, axis, dtype):
        values, index = getattr(torch, name)(*along(x, axis))
        return values, index.to(as_dtype(dtype))


_extremes("cummax")
_extremes("cummin")


same("x, n=1, axis=-1, prepend=None, append=None, name=None, *, out=None", *spread("diff", *PUBLIC))


def trapezoids(y, x, dx, axis):
    """The area under each pair of neighbours; `x` may be one row for all of `y`."""
    if x is None:
        width = 1.0 if dx is None else float(dx)
    elif x.ndim == 1:
        width = torch.diff(x).reshape([-1 if one == axis % y.ndim else 1 for one in range(y.ndim)])
    else:
        width = torch.diff(x, dim=axis)
    count = y.shape[axis] - 1
    return (y.narrow(axis, 0, count) + y.narrow(axis, 1, count)) * width / 2


@api(*spread("trapezoid", *PUBLIC), y=FACTORS, x=FACTORS, dx=positive())
def trapezoid(y, x=None, dx=None, axis=-1, name=None):
    return trapezoids(y, x, dx, axis).sum(axis)


@api(*spread("cumulative_trapezoid", *PUBLIC), y=FACTORS, x=FACTORS, dx=positive())
def cumulative_trapezoid(y, x=None, dx=None, axis=-1, name=None):
    return trapezoids(y, x, dx, axis).cumsum(axis)
