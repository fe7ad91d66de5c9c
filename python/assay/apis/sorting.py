"""Extremes by index, sorting, and search in sorted sequences."""

import math

from assay import orders
from assay.arguments import as_dtype, as_int
from assay.reference import on_cpu, on_host, torch
from assay.regimes import TRAITS
from assay.registry import api
from assay.residuals import pointed_at
from assay.rules import Fill, Literal, halves, increasing, integers, uniform
from assay.shared import DISTINCT
from assay.shorthand import LITERAL_LIMIT, PUBLIC, TIES, spread
from assay.spec import FLOATING, INTEGER, TensorSpec


def no_ties(axes_of_none):
    """Distinct elements in each row along `axis`, if the dtype has enough values: no value occurs twice
    within a stretch as long as the axis and all axes after it."""

    def rule(this, axis=None):
        axes = axes_of_none if axis is None else axis
        axes = [axes] if isinstance(axes, int | TensorSpec) else axes
        first = min((one % this.ndim for one in axes if isinstance(one, int)), default=0) if this.shape else 0
        stretch = math.prod(this.shape[first:])
        if this.dtype in INTEGER:
            return Fill(DISTINCT, -stretch, stretch, stretch)
        return Fill(DISTINCT, -1000, 1000, stretch)

    return rule


LAST = no_ties(-1)
ALL = no_ties(())


# Only gradients of equal elements are not specified.
CONSISTENT = {"without": {"exact": TRAITS["sorting"].without["exact"]}}


def extent(x, axis=None):
    """The extent of the searched axis, the last one by default."""
    return x.shape[-1 if axis is None else axis] if x.shape else 1


def _along(given, otherwise=-1):
    """The axis of a call, as an integer or None."""
    axis = given.get("axis", given.get("dim"))
    return otherwise if axis is None else int(axis)


def _consistent(found, x, axis, **more):
    """`found`, a result or (values, indices), or what can be compared of it if x has NaN or infinity."""
    array = orders.special(x)
    if array is None:
        return found
    parts = found if isinstance(found, tuple | list) else (found,)
    arrays = [orders.array_of(part) for part in parts]
    if len(arrays) > 1:
        named = dict(zip(("values", "index"), arrays, strict=True))
    else:
        named = {"index" if "int" in str(parts[0].dtype) else "values": arrays[0]}
    return on_host(orders.shown(array, axis if array.ndim else None, **named, **more))


def _extreme(name, index, x, axis):
    array = orders.special(x)
    if array is None:
        return index
    flat = x.reshape([-1]) if axis is None else x
    own = (flat.max if name == "argmax" else flat.min)(0 if axis is None or not x.ndim else axis)
    own = own[0] if isinstance(own, tuple) else own
    return on_host(orders.extreme(array, axis, orders.array_of(index), own))


def _extreme_index(name):
    @api(
        *spread(name, *PUBLIC),
        x=ALL,
        axis=integers(0, 1),
        signature="x, axis=None, keepdim=False, dtype='int64', name=None",
        shown=lambda found, given: _extreme(name, found, given["x"], _along(given, None)),
        traits=CONSISTENT,
    )
    def call(x, axis, keepdim, dtype):
        axis = None if axis is None else as_int(axis)
        index = getattr(torch, name)(x, axis, keepdim=bool(keepdim))
        return _extreme(name, index.to(as_dtype(dtype)), x, axis)


_extreme_index("argmax")
_extreme_index("argmin")


def _topk(found, given):
    """With sorted=False, the order is not specified."""
    axis, descending = _along(given), bool(given.get("largest", True))
    if not given.get("sorted", True):
        found = orders.in_order(*found, axis, descending)
    return _consistent(tuple(found), given["x"], axis, descending=descending)


@api(
    *spread("topk", *PUBLIC),
    x=LAST,
    k=integers(1, lambda x, axis=None: extent(x, axis) + 1),
    traits=CONSISTENT,
    shown=_topk,
)
def topk(x, k, axis=None, largest=True, sorted=True, name=None, *, out=None):
    axis = -1 if axis is None else axis
    found = torch.topk(x, as_int(k), axis, largest, sorted=True)
    return _topk(found, {"x": x, "axis": axis, "largest": largest})


# With stable=True the order of equal elements is specified.
STABLE = {"exact": lambda stable=False: None if stable else TRAITS["sorting"].without["exact"]}


def _sorted(found, given):
    x = given["x"] if "x" in given else given["input"]
    axis = _along(given, -1 if "x" in given else 0)
    return _consistent(found, x, axis, descending=given.get("descending", False), whole=True)


@api(
    *spread("sort", *PUBLIC),
    x=LAST,
    undefined=STABLE,
    traits=CONSISTENT,
    shown=_sorted,
)
def sort(x, axis=-1, descending=False, stable=False, name=None):
    values = torch.sort(x, dim=axis, descending=descending, stable=True).values
    return _sorted(values, {"x": x, "axis": axis, "descending": descending})


@api(*spread("msort", *PUBLIC), input=no_ties(0), traits=CONSISTENT, shown=_sorted)
def msort(input, *, out=None):
    return _sorted(torch.sort(input, dim=0, stable=True).values, {"input": input})


@api(*spread("argsort", *PUBLIC), x=LAST, undefined=STABLE, traits=CONSISTENT, shown=_sorted)
def argsort(x, axis=-1, descending=False, stable=False, name=None):
    indices = torch.sort(x, dim=axis, descending=descending, stable=True).indices
    return _sorted(indices, {"x": x, "axis": axis, "descending": descending})


@api(
    *spread("kthvalue", *PUBLIC),
    x=LAST,
    traits=CONSISTENT,
    shown=lambda found, given: _consistent(tuple(found), given["x"], _along(given)),
)
def kthvalue(x, k, axis=None, keepdim=False, name=None):
    axis = -1 if axis is None else axis
    return _consistent(tuple(torch.kthvalue(x, k, axis, keepdim)), x, axis)


def _some_nan(this):
    """Few numbers, each several times, and NaN."""
    if this.dtype not in FLOATING or not 0 < this.size <= LITERAL_LIMIT:
        return None
    row = max(1, this.shape[-1])
    return Literal([math.nan if n % 11 == n // row % 11 else n * n % 13 % 4 for n in range(this.size)])


def _mode(found, given):
    """`found`, or what can be compared of it if x has NaN."""
    x, axis = given["x"], given.get("axis", -1)
    array = orders.special(x)
    if array is None:
        return pointed_at(x, found, axis)
    return orders.most_frequent(array, axis, *map(orders.array_of, found))


@api(
    *spread("mode", *PUBLIC),
    x=integers(0, lambda x, axis=-1: max(extent(x, axis) // 2, 2)),
    equal=("value", "value", "shape"),
    grad=TIES,
    regimes={"nan": {"x": _some_nan}},
    shown=_mode,
)
def mode(x, axis=-1, keepdim=False, name=None):
    """The smallest of the most frequent values; the index of one of the equal elements is not specified."""
    # On a GPU PyTorch may return another of the most frequent values.
    values, index = on_cpu(torch.mode, x, axis, keepdim) if x.is_cuda else torch.mode(x, axis, keepdim)
    found = _mode((values, index), {"x": x, "axis": axis})
    if isinstance(found, dict):  # PyTorch counts wrongly beside NaN
        found["no number is more frequent"] = True
    return found


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
