"""Extremes by index, sorting, and search in sorted sequences."""

import math

from assay.arguments import as_dtype, as_int
from assay.reference import on_cpu, torch
from assay.regimes import TRAITS
from assay.registry import api
from assay.residuals import pointed_at
from assay.rules import DISTINCT, Fill, Literal, halves, increasing, integers, uniform
from assay.shorthand import LITERAL_LIMIT, PUBLIC, spread
from assay.spec import INTEGER, TensorSpec


def no_ties(axes_of_none):
    """Distinct elements in each row along `axis`, if the dtype has enough values: no value occurs twice
    within a stretch as long as the axis and all axes after it."""

    def rule(this, axis=None):
        axes = axes_of_none if axis is None else axis
        axes = [axes] if isinstance(axes, int | TensorSpec) else axes
        first = min((one % this.ndim for one in axes if isinstance(one, int)), default=0) if this.shape else 0
        stretch = math.prod(this.shape[first:])
        if this.dtype in INTEGER:
            return Fill(DISTINCT, 0, 2 * stretch, stretch)
        return Fill(DISTINCT, -1000, 1000, stretch)

    return rule


LAST = no_ties(-1)
ALL = no_ties(())


def extent(x, axis=None):
    """The extent of the searched axis, the last one by default."""
    return x.shape[-1 if axis is None else axis] if x.shape else 1


def _extreme_index(name):
    @api(
        *spread(name, *PUBLIC),
        x=ALL,
        axis=integers(0, 1),
        signature="x, axis=None, keepdim=False, dtype='int64', name=None",
    )
    def call(x, axis, keepdim, dtype):
        index = getattr(torch, name)(x, None if axis is None else as_int(axis), keepdim=bool(keepdim))
        return index.to(as_dtype(dtype))


_extreme_index("argmax")
_extreme_index("argmin")


@api(*spread("topk", *PUBLIC), x=LAST, k=integers(1, lambda x, axis=None: extent(x, axis) + 1))
def topk(x, k, axis=None, largest=True, sorted=True, name=None, *, out=None):
    return tuple(torch.topk(x, as_int(k), -1 if axis is None else axis, largest, sorted=True))


# With stable=True the order of equal elements is specified.
STABLE = {"exact": lambda stable=False: None if stable else TRAITS["sorting"].without["exact"]}


@api(*spread("sort", *PUBLIC), x=LAST, undefined=STABLE)
def sort(x, axis=-1, descending=False, stable=False, name=None):
    return torch.sort(x, dim=axis, descending=descending, stable=True).values


@api(*spread("msort", *PUBLIC), input=no_ties(0))
def msort(input, *, out=None):
    return torch.sort(input, dim=0, stable=True).values


@api(*spread("argsort", *PUBLIC), x=LAST, undefined=STABLE)
def argsort(x, axis=-1, descending=False, stable=False, name=None):
    return torch.sort(x, dim=axis, descending=descending, stable=True).indices


@api(*spread("kthvalue", *PUBLIC), x=LAST)
def kthvalue(x, k, axis=None, keepdim=False, name=None):
    return tuple(torch.kthvalue(x, k, -1 if axis is None else axis, keepdim))


@api(
    *spread("mode", *PUBLIC),
    x=integers(0, lambda x, axis=-1: max(extent(x, axis) // 2, 2)),
    equal=("value", "value", "shape"),
    grad=False,
    shown=lambda found, given: pointed_at(given["x"], found, given.get("axis", -1)),
)
def mode(x, axis=-1, keepdim=False, name=None):
    """The smallest of the most frequent values; the index of one of the equal elements is not specified."""
    # On a GPU PyTorch may return another of the most frequent values.
    values, index = on_cpu(torch.mode, x, axis, keepdim) if x.is_cuda else torch.mode(x, axis, keepdim)
    return values, values.reshape(-1), index


def steps(this):
    """Increasing; integers leave gaps."""
    return increasing(0, 4 * this.shape[-1]) if this.dtype in INTEGER else increasing(-0.5, 0.5)


def around(sorted_sequence, this):
    """Values from below the first step to above the last."""
    return integers(0, 4 * sorted_sequence.shape[-1] + 2) if this.dtype in INTEGER else uniform(-0.6, 0.6)


def met(this):
    """Increasing halves with repetitions, so that left and right of equal elements differ."""
    if this.dtype in INTEGER or this.size > LITERAL_LIMIT:
        return None
    row = max(1, this.shape[-1])
    return Literal([math.floor(13 * (place % row) / row) / 2 - 3 for place in range(this.size)])


def asked(this):
    return None if this.dtype in INTEGER else halves(-3.5, 4)


# Unlike sorting, these APIs specify the position among equal elements.
SEARCH = {"without": {name: why for name, why in TRAITS["sorting"].without.items() if name != "exact"}}


def search(sorted_sequence, values, out_int32, right):
    """In the common dtype, because PyTorch rejects different dtypes."""
    common = torch.promote_types(sorted_sequence.dtype, values.dtype)
    return torch.searchsorted(
        sorted_sequence.to(common), values.to(common).contiguous(), out_int32=out_int32, right=right
    )


@api(
    "paddle.searchsorted",
    sorted_sequence=steps,
    values=around,
    regimes={"exact": {"sorted_sequence": met, "values": asked}},
    traits=SEARCH,
)
def searchsorted(
    sorted_sequence, values, out_int32=False, right=False, name=None, *, side=None, out=None, sorter=None
):
    return search(sorted_sequence, values, out_int32, right if side is None else side == "right")


@api(
    *spread("bucketize", *PUBLIC),
    x=around,
    sorted_sequence=steps,
    regimes={"exact": {"sorted_sequence": met, "x": asked}},
    traits=SEARCH,
)
def bucketize(x, sorted_sequence, out_int32=False, right=False, name=None, *, out=None):
    return search(sorted_sequence, x, out_int32, right)
