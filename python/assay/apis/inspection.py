"""Properties of a tensor, and its values as Python numbers."""

from assay.arguments import as_int
from assay.reference import torch
from assay.registry import api
from assay.shorthand import PUBLIC, spread


def number(value, dtype):
    return torch.tensor(value, dtype=dtype)


@api("paddle.shape")
def shape(input):
    return number(list(input.shape), torch.int64)


@api(*spread("numel", *PUBLIC))
def numel(x, name=None):
    return number(x.numel(), torch.int64)


@api(*spread("rank", *PUBLIC))
def rank(input):
    return number(input.ndim, torch.int32)


@api(*spread("is_empty", *PUBLIC))
def is_empty(x, name=None):
    return number(x.numel() == 0, torch.bool)


@api("paddle.Tensor.dim", "paddle.Tensor.ndimension")
def dim(x):
    return x.ndim


@api("paddle.Tensor.element_size")
def element_size(x):
    return x.element_size()


@api("paddle.Tensor.item")
def item(x, *args):
    """One element, by no index, by a flat index, or by an index for each axis."""
    if not args:
        return x.item()
    if len(args) == 1:
        return x.reshape(-1)[as_int(args[0])].item()
    return x[tuple(as_int(index) for index in args)].item()


@api(*spread("tolist", *PUBLIC))
def tolist(x):
    return x.tolist()
