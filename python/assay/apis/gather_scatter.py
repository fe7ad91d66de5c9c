"""Gathering and scattering of elements by index."""

from array import array
from math import prod

from assay.apis.indexing import NO_PLACE_TWICE, mask_for, mask_with, no_place_twice
from assay.arguments import as_int
from assay.known_deviation import follows
from assay.reference import common_shape, torch
from assay.registry import api, same
from assay.rules import Fill, Literal, constant, distinct, integers
from assay.shared import DISTINCT
from assay.shorthand import IN_PLACE, METHOD_IN_PLACE, PUBLIC, spread

_WALK = 20_000  # rows of coordinates; longer tensors repeat them
_MOST = 4_000_000  # the largest number of values that a rule lists


@api(
    *spread("gather", *PUBLIC),
    index=integers(0, lambda x, axis=None: x.shape[axis if isinstance(axis, int) else 0]),
    axis=constant(0),
)
def gather(x, index, axis=None, name=None, out=None):
    """A column of indices counts as a row; a 0-d index removes its axis."""
    axis = 0 if axis is None else as_int(axis)
    taken = torch.index_select(x, axis, index.reshape(-1))
    return taken if index.ndim else taken.squeeze(axis)


@api(*spread("index_select", *PUBLIC), index=integers(0, lambda x, axis=0: x.shape[axis]))
def index_select(x, index, axis=0, name=None, *, out=None):
    return torch.index_select(x, axis, index)


@api(*spread("index_sample", *PUBLIC), index=integers(0, lambda x: x.shape[1]))
def index_sample(x, index):
    return torch.gather(x, 1, index.long())


def _coordinates(extents, this):
    """Rows of coordinates within `extents` that visit every position before one recurs."""
    depth = this.shape[-1] if this.shape else 1
    if this.size > _MOST:
        return integers(0, min(extents[:depth], default=1))
    places = max(1, prod(extents[:depth]))
    extents = [max(1, extent) for extent in extents[:depth]]
    stride = 7919 if places % 7919 else 7907
    rows = this.size // max(1, depth)
    walk = [row * stride % places for row in range(min(rows, _WALK))]
    coordinates = array("d", bytes(8 * depth * len(walk)))
    within = prod(extents)  # of the axes that follow
    for axis, extent in enumerate(extents):
        within //= extent
        coordinates[axis::depth] = array("d", [place // within % extent for place in walk])
    return Literal((coordinates * (rows // _WALK + 1))[: this.size])


def _repeated(extents, this):
    """Few positions, repeated, so that several values are added at one position."""
    depth = this.shape[-1] if this.shape else 1
    return integers(0, max(1, min([*extents[:depth], 2])))


@api(*spread("gather_nd", *PUBLIC), index=lambda x, this: _coordinates(x.shape, this))
def gather_nd(x, index, name=None):
    """The last axis of the index holds coordinates of the first axes of x."""
    return x[tuple(index.long().unbind(-1))] if index.shape[-1] else x.expand(*index.shape[:-1], *x.shape)


@api(
    *spread("scatter_nd_add", *PUBLIC),
    index=lambda x, this: _coordinates(x.shape, this),
    regimes={"exact": {"index": lambda x, this: _repeated(x.shape, this)}},
)
def scatter_nd_add(x, index, updates, name=None):
    if not index.shape[-1]:
        return x + updates.reshape(-1, *x.shape).sum(0)
    return x.index_put(tuple(index.long().unbind(-1)), updates, accumulate=True)


@api("paddle.scatter_nd", index=lambda shape, this: _coordinates(list(shape), this))
def scatter_nd(index, updates, shape, name=None):
    return scatter_nd_add(torch.zeros(tuple(shape), dtype=updates.dtype), index, updates)


def _rows(extent, this):
    """Distinct rows if there are enough, so that the order of writing does not matter."""
    return distinct(0, extent) if this.size <= extent else integers(0, extent)


def _alike(value, doubtful):
    """Equal values if several are written to one position."""
    return constant(0.25 if "float" in value.dtype else 1) if doubtful else None


@api(
    *spread("scatter", *PUBLIC, *IN_PLACE),
    index=lambda x, overwrite=True, *, this: (
        _rows(x.shape[0], this) if overwrite else integers(0, x.shape[0])
    ),
    rules={
        "updates": lambda x, index, overwrite=True, *, this: _alike(
            this, overwrite and index.size > x.shape[0]
        )
    },
)
def scatter(x, index, updates, overwrite=True, name=None, out=None):
    """With overwrite=False the named rows are zeroed and the updates added."""
    rows = index.reshape(-1).long()
    updates = updates.reshape(len(rows), *x.shape[1:])
    if overwrite:
        return x.index_copy(0, rows, updates)
    return x.index_fill(0, rows, 0).index_add(0, rows, updates)


@api(*spread("take_along_axis", *PUBLIC), indices=integers(0, lambda arr, axis: arr.shape[axis]))
def take_along_axis(arr, indices, axis, broadcast=True, *, out=None):
    if broadcast:
        arr, indices = _broadcast_but(axis, arr, indices)
    return torch.gather(arr, axis, indices.long())


def _broadcast_but(axis, *tensors):
    """Broadcasts tensors of one rank in all axes except this one."""
    moved = [tensor.movedim(axis, -1) for tensor in tensors]
    common = common_shape(*(tensor.shape[:-1] for tensor in moved))
    return [tensor.expand(*common, tensor.shape[-1]).movedim(-1, axis) for tensor in moved]


_REDUCTIONS = {"add": "sum", "mul": "prod", "multiply": "prod"}  # names that differ


def _places_along(arr, axis, reduce="assign", *, this):
    """For assignment, distinct positions along the axis, if it is long enough."""
    extent, count = arr.shape[axis], this.shape[axis]
    if reduce != "assign" or count > extent:
        return integers(0, extent)
    if axis in (-1, this.ndim - 1):
        return Fill(DISTINCT, 0, extent, max(1, count))
    inner = prod(this.shape[axis % this.ndim + 1 :])
    places = [place * (extent // count) for place in range(count) for _ in range(inner)]
    return Literal(places * (this.size // max(1, len(places))))


@api(*spread("put_along_axis", *PUBLIC, *METHOD_IN_PLACE), indices=_places_along)
def put_along_axis(arr, indices, values, axis, reduce="assign", include_self=True, broadcast=True):
    """With `broadcast` the indices expand to the shape of arr except along the axis, unless they are larger
    somewhere."""
    if not isinstance(values, torch.Tensor):
        values = torch.tensor(values, dtype=arr.dtype)
    if broadcast:
        if all(wide >= narrow for wide, narrow in zip(arr.shape, indices.shape, strict=True)):
            extents = list(arr.shape)
            extents[axis] = indices.shape[axis]
            indices = indices.expand(extents)
        single = values if values.numel() == 1 else None
        values = values.expand(indices.shape)
    else:
        single = None
        values = values[tuple(slice(extent) for extent in indices.shape)]
    indices = indices.long()
    if reduce != "assign":
        reduction = _REDUCTIONS.get(reduce, reduce)
        return arr.scatter_reduce(axis, indices, values, reduction, include_self=include_self)
    if single is None:
        return torch.scatter(arr, axis, indices, values)
    named = torch.zeros_like(arr, dtype=torch.bool).scatter(axis, indices, True)
    return torch.where(named, single.reshape(()).to(arr.dtype), arr)


@api(
    *spread("take", *PUBLIC),
    index=lambda x, mode="raise": integers(-x.size, x.size) if mode == "raise" else integers(-99, 100),
)
def take(x, index, mode="raise", name=None):
    count = x.numel()
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = index.clamp(0, count - 1)
    return torch.take(x, index.long())


def _put_at(x, indices, value, accumulate=False, *, this):
    """Distinct positions if possible."""
    if this.dtype == "bool":
        counts = [other.shape[-1] for other in indices if other.dtype != "bool" and other.shape]
        return mask_with(max(counts), this.size) if counts else mask_for(x, this, value)
    before = indices[: indices.index(this)]
    extent = x.shape[sum(other.ndim if other.dtype == "bool" else 1 for other in before)]
    return integers(0, extent) if accumulate else no_place_twice(this, x.shape[: len(before)], extent)


@api(*spread("index_put", *PUBLIC, *IN_PLACE), indices=_put_at, known_deviation=NO_PLACE_TWICE)
def index_put(x, indices, value, accumulate=False, name=None):
    return x.index_put(tuple(indices), value, accumulate)


@api(*spread("index_add", *PUBLIC, *IN_PLACE), index=integers(0, lambda x, axis: x.shape[axis]))
def index_add(x, index, axis, value, alpha=1, name=None, *, out=None):
    return torch.index_add(x, axis, index, value, alpha=alpha)


@api(
    *spread("index_fill", *PUBLIC, *IN_PLACE),
    index=integers(0, lambda x, axis: x.shape[axis]),
    known_deviation=follows("an empty x is returned unchanged; the index is not checked"),
)
def index_fill(x, index, axis, value, name=None):
    if x.numel() == 0:
        return x.clone()
    return torch.index_fill(x, axis, index.long(), value)


@api(*spread("masked_fill", *PUBLIC, *IN_PLACE))
def masked_fill(x, mask, value, name=None):
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(value, dtype=x.dtype)
    return torch.where(mask, value.to(x.dtype), x)


same("x, mask, value, name=None", *spread("masked_scatter", *PUBLIC, *IN_PLACE))


@api(*spread("multiplex", *PUBLIC), index=integers(0, lambda inputs: len(inputs)), traits={"moves": True})
def multiplex(inputs, index, name=None):
    """Row r of the result is row r of the input that index[r] names."""
    rows = torch.arange(len(index))
    return torch.stack(inputs)[index.reshape(-1).long(), rows]


@api(*spread("shard_index", *PUBLIC), input=integers(0, lambda index_num: index_num))
def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    size = -(-index_num // nshards)
    return torch.where(input // size == shard_id, input % size, ignore_value)


@api(*spread("scatter_add", *PUBLIC), index=integers(0, lambda input, dim: input.shape[dim]))
def scatter_add(input, dim, index, src):
    return torch.scatter_add(input, dim, index.long(), src)


@api(*spread("scatter_reduce", *PUBLIC), index=integers(0, lambda input, dim: input.shape[dim]))
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    return torch.scatter_reduce(input, dim, index.long(), src, reduce, include_self=include_self)
