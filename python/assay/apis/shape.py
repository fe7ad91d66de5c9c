"""Other shapes and orders of the same elements: reshape, transpose, squeeze, expand, tile, flip, views."""

from math import prod

from assay.arguments import as_axes, as_dtype, as_int, as_ints
from assay.known_deviation import follows
from assay.reference import common_shape, torch
from assay.registry import api, same
from assay.rules import integers, literal
from assay.shorthand import IN_PLACE, PUBLIC, spread
from assay.spec import TensorSpec


def _filled(shape, wanted, this):
    """The values of `this`, which is the shape or one entry of it, if the shape is `wanted`."""
    return wanted if shape == this else [wanted[list(shape).index(this)]] * this.size


def _holding(extents, shape):
    """`shape` with numbers for its tensors, so that it has as many elements as `extents`."""
    entries = [None] * shape.size if isinstance(shape, TensorSpec) else list(shape)
    known = [extents[at] if entry == 0 else entry for at, entry in enumerate(entries) if type(entry) is int]
    open_places = [at for at, entry in enumerate(entries) if type(entry) is not int]
    left = prod(extents) // max(1, abs(prod(known)))
    for at in open_places:
        guess = extents[at] if at < len(extents) and extents[at] else 1
        last = at == open_places[-1] and -1 not in known
        entries[at] = left if last else guess if left % guess == 0 else 1
        left //= max(1, entries[at])
    return entries


def _over(extents, shape):
    """`shape` with numbers for its tensors, so that `extents` broadcasts to it."""
    entries = [None] * shape.size if isinstance(shape, TensorSpec) else list(shape)
    below = [1] * (len(entries) - len(extents)) + list(extents)
    return [
        entry if type(entry) is int else 3 if extent == 1 else extent
        for entry, extent in zip(entries, below, strict=False)
    ]


@api(
    *spread("reshape", *PUBLIC, *IN_PLACE),
    shape=literal(lambda x, shape, this: _filled(shape, _holding(x.shape, shape), this)),
)
def reshape(x, shape, name=None):
    """A 0 in `shape` keeps the extent of x, unless x is empty."""
    sizes = as_ints(shape)
    if x.numel():
        sizes = [x.shape[at] if size == 0 else size for at, size in enumerate(sizes)]
    return torch.reshape(x, sizes)


@api(
    *spread("unflatten", *PUBLIC),
    shape=literal(lambda x, axis, shape, this: _filled(shape, _holding([x.shape[axis]], shape), this)),
)
def unflatten(x, axis, shape, name=None):
    return torch.unflatten(x, axis, as_ints(shape))


# These APIs depend on the memory layout of the input, and reject some layouts.
OF_MEMORY = {"layout": "the result depends on the memory layout of the input"}


@api(*spread("view", *PUBLIC), undefined=OF_MEMORY)
def view(x, shape_or_dtype, name=None):
    return x.view(shape_or_dtype if isinstance(shape_or_dtype, list | tuple) else as_dtype(shape_or_dtype))


_VIEW_AS = {"to": "torch.Tensor.view_as", "undefined": OF_MEMORY}
same("x, other, name=None", *spread("view_as", *PUBLIC), **_VIEW_AS)
same("x, shape, stride, offset=0, name=None", *spread("as_strided", *PUBLIC), undefined=OF_MEMORY)


same("x, axis, size, step, name=None", *spread("unfold", *PUBLIC), to="torch.Tensor.unfold")
same("x, start_axis=0, stop_axis=-1, name=None", *spread("flatten", *PUBLIC, *IN_PLACE))


same("input", "paddle.ravel paddle.Tensor.ravel")
same("input, name=None", "paddle.t paddle.t_ paddle.Tensor.t paddle.Tensor.t_")


@api(*spread("matrix_transpose", *PUBLIC), "paddle.linalg.matrix_transpose")
def matrix_transpose(x, name=None):
    return x.mT


@api(
    *spread("transpose", *PUBLIC, *IN_PLACE),
    known_deviation=follows("axes beyond the length of `perm` keep their positions"),
)
def transpose(x, perm, name=None):
    return torch.permute(x, (*perm, *range(len(perm), x.ndim)))


same("input, dims", "paddle.permute paddle.Tensor.permute")
same("x, source, destination, name=None", "paddle.moveaxis paddle.Tensor.moveaxis")


def _axes_of_one(x, count):
    """This many axes: those of extent 1 first, then axis 0."""
    axes = sorted(range(x.ndim), key=lambda axis: x.shape[axis] != 1)
    return (axes + [0] * min(count, 64))[:count]


@api(*spread("squeeze", *PUBLIC, *IN_PLACE), axis=literal(lambda x, this: _axes_of_one(x, this.size)))
def squeeze(x, axis=None, name=None):
    axes = as_axes(axis)
    return torch.squeeze(x) if axes is None else torch.squeeze(x, axes)


@api(*spread("unsqueeze", *PUBLIC, *IN_PLACE), axis=literal(lambda this: range(this.size)))
def unsqueeze(x, axis, name=None):
    """Axes are added one after the other, each in the shape of the previous step."""
    for place in as_ints(axis):
        x = torch.unsqueeze(x, place)
    return x


@api(
    *spread("expand", *PUBLIC),
    *spread("broadcast_to", *PUBLIC),
    cost="expansion",
    shape=literal(lambda x, shape, this: _filled(shape, _over(x.shape, shape), this)),
)
def expand(x, shape, name=None):
    return x.expand(as_ints(shape))


same("x, y, name=None", *spread("expand_as", *PUBLIC), to="torch.Tensor.expand_as")


@api("paddle.broadcast_tensors")
def broadcast_tensors(input, name=None):
    return list(torch.broadcast_tensors(*input))


def _common(shapes):
    """An unknown extent of -1 yields to any other extent except 1."""
    known = [[1 if extent == -1 else extent for extent in shape] for shape in shapes]
    marks = [[2 if extent == -1 else 1 for extent in shape] for shape in shapes]
    pairs = zip(common_shape(*known), common_shape(*marks), strict=True)
    return [-1 if pair == (1, 2) else pair[0] for pair in pairs]


@api("paddle.broadcast_shape")
def broadcast_shape(x_shape, y_shape):
    return _common([x_shape, y_shape])


@api("paddle.broadcast_shapes")
def broadcast_shapes(*shapes):
    return _common(shapes)


@api(*spread("tile", *PUBLIC), cost="product", repeat_times=integers(1, 4))
def tile(x, repeat_times, name=None):
    return torch.tile(x, as_ints(repeat_times))


@api(*spread("repeat_interleave", *PUBLIC), cost="product", repeats=integers(1, 4), axis=integers(0, 1))
def repeat_interleave(x, repeats, axis=None, name=None, *, output_size=None):
    return torch.repeat_interleave(x, repeats, None if axis is None else as_int(axis))


@api(*spread("flip", *PUBLIC), *spread("reverse", *PUBLIC))
def flip(x, axis, name=None):
    return torch.flip(x, as_ints(axis))


same("x, k=1, axes=(0, 1), name=None", *spread("rot90", *PUBLIC))


@api(*spread("roll", *PUBLIC), shifts=integers(-3, 4))
def roll(x, shifts, axis=None, name=None):
    return torch.roll(x, as_ints(shifts), None if axis is None else as_ints(axis))


def _at_least(function):
    """One tensor gives one tensor; several, or a list of them, give a list."""

    def call(*inputs, name=None):
        inputs = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
        results = [getattr(torch, function)(value) for value in inputs]
        return results[0] if len(results) == 1 else results

    return call


for _function in ("atleast_1d", "atleast_2d", "atleast_3d"):
    api(f"paddle.{_function}", f"paddle.Tensor.{_function}")(_at_least(_function))


@api("paddle.crop", shape=integers(1, 2), offsets=integers(0, 1))
def crop(x, shape=None, offsets=None, name=None):
    """A -1 in `shape` means everything after the offset."""
    starts = [0] * x.ndim if offsets is None else as_ints(offsets)
    extents = x.shape if shape is None else as_ints(shape)
    for axis, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        x = x.narrow(axis, start, x.shape[axis] - start if extent == -1 else extent)
    return x


@api(*spread("narrow", *PUBLIC), start=integers(0, 1))
def narrow(input, dim, start, length):
    return torch.narrow(input, dim, as_int(start), length)
