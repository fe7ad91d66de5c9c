"""Tensors from shapes and numbers: constants, ranges, triangle indices, uninitialised memory."""

from assay import draw_distribution
from assay.apis.shape import OF_MEMORY
from assay.arguments import as_dtype, as_int, as_ints
from assay.reference import torch
from assay.registry import api, same
from assay.rules import integers, positive
from assay.shorthand import FROM_SHAPES, NO_BACKWARD, OUTSIDE_GRAPH

EXTENT = integers(1, 5)  # for shapes that are tensors


def _number(value):
    """A Python number from a number, a string or a tensor with one element."""
    if isinstance(value, torch.Tensor):
        return value.item()
    return float(value) if isinstance(value, str) else value


def _filled(shape, dtype, value):
    return torch.full(tuple(shape), _number(value), dtype=dtype)


def _default_dtype(value):
    kinds = {bool: torch.bool, complex: torch.complex128}
    return kinds.get(type(value), torch.float32)


# The ends of the signatures. References use none of these parameters.
PLACED = "device=None, requires_grad=False, pin_memory=False"
_SHAPE = f"dtype=None, name=None, *, out=None, {PLACED}"


def _constant(name, made, value="", **options):
    """The three forms of a tensor that `made(shape, dtype, fill_value)` fills."""

    @api(f"paddle.{name}", shape=EXTENT, grad=FROM_SHAPES, signature=f"shape, {value}{_SHAPE}", **options)
    def of_shape(shape, dtype, fill_value=None):
        return made(as_ints(shape), as_dtype(dtype) or _default_dtype(fill_value), fill_value)

    @api(
        f"paddle.{name}_like",
        grad=FROM_SHAPES,
        signature=f"x, {value}dtype=None, name=None, *, {PLACED}",
        **options,
    )
    def like(x, dtype, fill_value=None):
        return made(x.shape, as_dtype(dtype) or x.dtype, fill_value)

    @api(
        f"paddle.Tensor.new_{name}",
        size=EXTENT,
        grad=FROM_SHAPES,
        signature=f"var, size, {value}*, dtype=None, {PLACED}",
    )
    def new(var, size, dtype, fill_value=None):
        return made(as_ints(size), as_dtype(dtype) or var.dtype, fill_value)


_constant("full", _filled, "fill_value, ", equal="bits")
_constant("zeros", lambda shape, dtype, _: _filled(shape, dtype, 0))
_constant("ones", lambda shape, dtype, _: _filled(shape, dtype, 1))
_constant("empty", lambda shape, dtype, _: draw_distribution.anything(shape, dtype))

same("x, value", "paddle.Tensor.fill_", to="torch.full_like")


same("x", "paddle.Tensor.zero_", to="torch.zeros_like")


@api("paddle.Tensor.set_", grad=OUTSIDE_GRAPH, undefined=OF_MEMORY)
def set_(x, source=None, shape=None, stride=None, offset=0, name=None):
    """x becomes a view of the memory of `source`."""
    if source is None:
        return torch.empty(0, dtype=x.dtype)
    if shape is None:
        shape, stride = source.shape, source.stride()
    return torch.as_strided(source, shape, stride or torch.empty(shape).stride(), offset)


def _begin(end=None, step=1):
    """A start from which there is something to count, up or down."""
    if end is None:
        return integers(5, 10)
    return integers(10, 15) if isinstance(step, int | float) and step < 0 else integers(0, 3)


@api(
    "paddle.arange",
    start=_begin,
    end=integers(5, 10),
    step=integers(1, 3),
    grad=FROM_SHAPES,
    signature=f"start=0, end=None, step=1, dtype=None, *, out=None, {PLACED}, name=None",
)
def arange(start, end, step, dtype):
    if end is None:
        start, end = 0, start
    bounds = [start, end, step]
    whole = all(_is_whole(bound) for bound in bounds)
    dtype = as_dtype(dtype) or (torch.int64 if whole else torch.float32)
    start, end, step = (_number(bound) for bound in bounds)
    return torch.arange(start, end, step, dtype=dtype)


def _is_whole(value):
    return not value.is_floating_point() if isinstance(value, torch.Tensor) else isinstance(value, int)


# The start plus a multiple of the step may cancel; the rounding error of the step remains.
@api("paddle.linspace", num=integers(3, 8), grad=NO_BACKWARD, traits={"terms": 2.0})
def linspace(start, stop, num, dtype=None, name=None, *, out=None, device=None, requires_grad=False):
    start, stop = (_number(bound) for bound in (start, stop))
    return torch.linspace(start, stop, as_int(num), dtype=as_dtype(dtype) or torch.float32)


@api("paddle.logspace", num=integers(3, 8), base=positive(1.5, 2.5), grad=NO_BACKWARD)
def logspace(start, stop, num, base=10.0, dtype=None, name=None):
    start, stop, base = (_number(bound) for bound in (start, stop, base))
    return torch.logspace(start, stop, as_int(num), base, dtype=as_dtype(dtype) or torch.float32)


@api(
    "paddle.eye",
    cost="product",
    num_rows=EXTENT,
    num_columns=EXTENT,
    grad=FROM_SHAPES,
    signature=f"num_rows, num_columns=None, {_SHAPE}",
)
def eye(num_rows, num_columns, dtype):
    rows = as_int(num_rows)
    columns = rows if num_columns is None else as_int(num_columns)
    return torch.eye(rows, columns, dtype=as_dtype(dtype) or torch.float32)


@api("paddle.tril_indices", grad=FROM_SHAPES)
def tril_indices(row, col, offset=0, dtype="int64"):
    return torch.tril_indices(row, row if col is None else col, offset, dtype=as_dtype(dtype))


@api("paddle.triu_indices", grad=FROM_SHAPES)
def triu_indices(row, col=None, offset=0, dtype="int64"):
    return torch.triu_indices(row, row if col is None else col, offset, dtype=as_dtype(dtype))


@api("paddle.complex")
def complex_(real, imag, name=None, *, out=None):
    return torch.complex(*torch.broadcast_tensors(real, imag))


def _made(data, dtype):
    """A tensor of numbers (float32, int64 or complex64 by default), or a copy of a tensor."""
    if isinstance(data, torch.Tensor):
        return data.detach().to(as_dtype(dtype) or data.dtype)
    if isinstance(data, list | tuple) and data and isinstance(data[0], torch.Tensor):
        return torch.stack(data).detach().to(as_dtype(dtype) or data[0].dtype)
    return torch.tensor(data, dtype=as_dtype(dtype))


api("paddle.to_tensor", signature="data, dtype=None, place=None, stop_gradient=True")(_made)
api("paddle.as_tensor", signature="data, dtype=None, device=None, requires_grad=False, pin_memory=False")(
    _made
)


@api("paddle.asarray")
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    return _made(obj, dtype)


@api("paddle.range")
def numbers(start=0, end=None, step=1, dtype=None, *, out=None, device=None, requires_grad=False, name=None):
    """floor((end - start) / step) + 1 elements, including the last."""
    start, end = (0, start) if end is None else (start, end)
    dtype = as_dtype(dtype) or torch.float32
    count = int((end - start) / step // 1) + 1
    return (start + step * torch.arange(count, dtype=torch.float64)).to(dtype)
