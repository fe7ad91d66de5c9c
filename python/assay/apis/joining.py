"""Joining and splitting along an axis: concat, stack, split, unbind, meshgrid."""

from assay.arguments import as_int, as_ints
from assay.reference import torch
from assay.registry import api, same
from assay.rules import constant, literal
from assay.shorthand import PUBLIC, spread


def alike(tensors):
    """Raises TypeError for different dtypes, which Paddle documents to reject; PyTorch would promote them."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise TypeError("the tensors must have one dtype")
    return tensors


@api("paddle.concat", "paddle.cat", "paddle.concatenate", axis=constant(0))
def concat(x, axis=0, name=None, *, out=None):
    return torch.concat(alike(x), as_int(axis))


@api("paddle.stack")
def stack(x, axis=0, name=None, *, out=None):
    return torch.stack(alike(x), axis)


def _stacking(function):
    def call(x, name=None):
        return getattr(torch, function)(alike(x))

    return call


for _function in ("vstack", "hstack", "dstack", "row_stack", "column_stack"):
    api(f"paddle.{_function}")(_stacking(_function))


def _divisible_axis(x, parts, this):
    """An axis, given as a tensor, that the parts divide."""
    axes = [axis for axis, extent in enumerate(x.shape) if isinstance(parts, int) and extent % parts == 0]
    return [*axes, 0][:1] * this.size


@api(
    *spread("split", *PUBLIC),
    axis=literal(lambda x, num_or_sections, this: _divisible_axis(x, num_or_sections, this)),
    num_or_sections=constant(1),
)
def split(x, num_or_sections, axis=0, name=None):
    """A number of equal parts, or their extents; -1 stands for the rest. All parts of an empty axis are
    empty."""
    axis = as_int(axis)
    extent = x.shape[axis]
    if isinstance(num_or_sections, int):
        sections = [extent // num_or_sections] * num_or_sections
    elif extent == 0:
        sections = [0] * len(num_or_sections)
    else:
        sections = as_ints(num_or_sections)
        left = extent - sum(section for section in sections if section != -1)
        sections = [left if section == -1 else section for section in sections]
    return list(torch.split(x, sections, axis))


@api(*spread("chunk", *PUBLIC), axis=literal(lambda x, chunks, this: _divisible_axis(x, chunks, this)))
def chunk(x, chunks, axis=0, name=None):
    """Equal parts only, unlike torch.chunk."""
    return split(x, chunks, axis)


@api(*spread("tensor_split", *PUBLIC), axis=constant(0))
def tensor_split(x, num_or_indices, axis=0, name=None):
    return list(torch.tensor_split(x, num_or_indices, as_int(axis)))


@api(*spread("vsplit", *PUBLIC))
def vsplit(x, num_or_indices, name=None):
    return tensor_split(torch.vsplit(x, 1)[0], num_or_indices, 0)


@api(*spread("hsplit", *PUBLIC))
def hsplit(x, num_or_indices, name=None):
    return tensor_split(x, num_or_indices, 0 if x.ndim == 1 else 1)


@api(*spread("dsplit", *PUBLIC))
def dsplit(x, num_or_indices, name=None):
    return tensor_split(x, num_or_indices, 2)


same("input, axis=0", *spread("unbind", *PUBLIC))


@api(*spread("unstack", *PUBLIC))
def unstack(x, axis=0, num=None):
    return list(torch.unbind(x, axis))


@api("paddle.meshgrid", cost="product")
def meshgrid(*args, **kwargs):
    tensors = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return list(torch.meshgrid(*tensors, indexing=kwargs.get("indexing") or "ij"))


@api("paddle.cartesian_prod")
def cartesian_prod(x, name=None):
    return torch.cartesian_prod(*x)


same("x, r=2, with_replacement=False, name=None", *spread("combinations", *PUBLIC))


@api("paddle.block_diag")
def block_diag(inputs, name=None):
    return torch.block_diag(*inputs)
