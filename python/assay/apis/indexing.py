"""Subscripts: x[…], x[…] = value, and functions for slices."""

import math

from assay.arguments import as_ints
from assay.known_deviation import avoids
from assay.reference import torch
from assay.registry import api, same
from assay.rules import Literal, distinct, integers
from assay.shorthand import PUBLIC, spread
from assay.spec import TensorSpec


def _width(item):
    """The number of axes that a subscript item uses."""
    if item is None or isinstance(item, bool):
        return 0
    if isinstance(item, list):
        return 1 + max(0, *map(_width, item)) if item and isinstance(item[0], list) and _is_mask(item) else 1
    return item.ndim if _is_mask(item) else 1


def _is_mask(item):
    if isinstance(item, list):
        return bool(item) and _is_mask(item[0])
    return isinstance(item, bool) or str(getattr(item, "dtype", "")).endswith("bool")


def subscripts(index, ndim):
    """The items of a subscript except Ellipsis, each with the first axis that it uses."""
    items = index if type(index) is tuple else (index,)  # a TensorSpec is a tuple too
    axis = 0
    for item in items:
        if item is Ellipsis:
            axis += ndim - sum(_width(other) for other in items if other is not Ellipsis)
            continue
        yield item, axis
        axis += _width(item)


def mask_with(count, size):
    """A mask of `size` elements of which `count` are true; the rarer value is spread."""
    rare = min(count, size - count)
    step = size // max(1, rare)
    values = [count > rare] * size
    values[: rare * step : step] = [count == rare] * rare
    return Literal(values)


def mask_for(x, mask, value):
    """As many true elements as rows of values, if the values come in rows; else half."""
    if isinstance(value, TensorSpec) and value.ndim == x.ndim - mask.ndim + 1 and value.shape[0] != 1:
        return mask_with(value.shape[0], mask.size)
    return mask_with((mask.size + 1) // 2, mask.size) if mask.size < 1000 else None


def _taken(x, index, this):
    """Integers within the indexed axis; random values for masks."""
    for item, axis in subscripts(index, x.ndim):
        if item == this or isinstance(item, list) and this in item:
            return None if _is_mask(this) else integers(-x.shape[axis], x.shape[axis])


def _put(x, index, value, this):
    """Distinct positions if possible, so that the order of writing does not matter."""
    rule = _taken(x, index, this)
    if rule is None:
        return mask_for(x, this, value)
    before = []
    for item, axis in subscripts(index, x.ndim):
        if item == this:
            break
        if isinstance(item, TensorSpec) and item.shape == this.shape and not _is_mask(item):
            before.append(x.shape[axis])
    return no_place_twice(this, before, int(rule.high))


NO_PLACE_TWICE = avoids(
    "no position is written twice; the gradient would go to the wrong value", "paddle-setitem-index-twice"
)
SOME_PLACE = avoids(
    "half of a small mask is True; Paddle rejects a mask that is False everywhere",
    "paddle-setitem-empty-mask",
)


def no_place_twice(this, before, extent):
    """Indices for one of several index tensors. `before` has the extents of the axes that earlier ones index:
    the first varies fastest, the next counts its rounds."""
    done = math.prod(before)
    if not extent or before and this.size <= done:
        return integers(0, extent)
    if this.size <= extent:
        return distinct(0, extent)
    return Literal([n // max(1, done) % extent for n in range(this.size)])


def _as_index(item):
    """NumPy's reading of a list as an array; PyTorch reads it as a tuple."""
    if not isinstance(item, list):
        return item
    tensors = any(isinstance(part, torch.Tensor) for part in item)
    return torch.stack(item) if tensors else torch.tensor(item, dtype=None if item else torch.int64)


@api("paddle.Tensor.__getitem__", index=_taken)
def getitem(x, index):
    """PyTorch has no negative steps: they become positive steps through the flipped axis."""
    items = list(index) if type(index) is tuple else [index]
    for item, axis in subscripts(index, x.ndim):
        if isinstance(item, slice) and item.step is not None and item.step < 0:
            places = range(x.shape[axis])[item]
            last = x.shape[axis] - 1
            x = torch.flip(x, (axis,))
            start = last - places[0] if places else 0
            stop = last - places[-1] + 1 if places else 0
            position = next(at for at, other in enumerate(items) if other is item)
            items[position] = slice(start, stop, -item.step)
    return x[tuple(_as_index(item) for item in items)]


@api("paddle.Tensor.__setitem__", index=_put, known_deviation=(NO_PLACE_TWICE, SOME_PLACE))
def setitem(x, index, value):
    """The positions in x come from the same subscript of their flat indices."""
    places = getitem(torch.arange(x.numel()).reshape(x.shape), index)
    if isinstance(value, torch.Tensor):
        value = value.to(x.dtype)
        while value.ndim > places.ndim and value.shape[0] == 1:
            value = value[0]
        value = value.expand(places.shape)
    else:
        value = torch.full(places.shape, value, dtype=x.dtype)
    return x.reshape(-1).index_put((places,), value).reshape(x.shape)


def _axis_of(entries, axes, this):
    return axes[0] if entries == this else axes[list(entries).index(this)]


def _start(input, axes, starts, this):
    return integers(0, max(1, input.shape[_axis_of(starts, axes, this)] // 2))


def _end(input, axes, ends, this):
    extent = input.shape[_axis_of(ends, axes, this)]
    return integers(extent // 2, extent + 1)


@api(*spread("slice", *PUBLIC), starts=_start, ends=_end)
def slice_(input, axes, starts, ends):
    return input[_cut(input, axes, starts, ends, [1] * len(axes))]


def _cut(x, axes, starts, ends, strides):
    """The subscript of these slices."""
    cut = [slice(None)] * x.ndim
    parts = zip(as_ints(axes), as_ints(starts), as_ints(ends), as_ints(strides), strict=True)
    for axis, start, end, stride in parts:
        cut[axis] = slice(start, end, stride)
    return tuple(cut)


@api(
    *spread("strided_slice", *PUBLIC),
    starts=lambda x, axes, starts, this: _start(x, axes, starts, this),
    ends=lambda x, axes, ends, this: _end(x, axes, ends, this),
    strides=integers(1, 3),
)
def strided_slice(x, axes, starts, ends, strides, name=None):
    return getitem(x, _cut(x, axes, starts, ends, strides))


@api(*spread("slice_scatter", *PUBLIC))
def slice_scatter(x, value, axes, starts, ends, strides, name=None):
    return setitem(x, _cut(x, axes, starts, ends, strides), value)


same("x, values, axis, index, name=None", *spread("select_scatter", *PUBLIC))
