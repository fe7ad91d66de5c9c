"""Diagonals and triangles: taken out, put in, cut off."""

from assay.reference import torch
from assay.registry import api


@api("paddle.tril", "paddle.tril_", "paddle.Tensor.tril", "paddle.Tensor.tril_")
def tril(x, diagonal=0, name=None, *, out=None):
    return torch.tril(x, diagonal)


@api("paddle.triu", "paddle.triu_", "paddle.Tensor.triu", "paddle.Tensor.triu_")
def triu(x, diagonal=0, name=None, *, out=None):
    return torch.triu(x, diagonal)


@api("paddle.diag", "paddle.Tensor.diag")
def diag(x, offset=0, padding_value=0, name=None):
    """A vector (or a number) becomes a matrix with this padding; of a matrix the diagonal is taken."""
    if x.ndim > 1:
        return torch.diag(x, offset)
    extent = x.numel() + abs(offset)
    padding = torch.full((extent, extent), padding_value, dtype=x.dtype)
    return torch.diagonal_scatter(padding, x.reshape(-1), offset)


@api("paddle.diagflat", "paddle.Tensor.diagflat")
def diagflat(x, offset=0, name=None):
    return torch.diagflat(x, offset)


@api("paddle.diag_embed", "paddle.Tensor.diag_embed")
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Linear in the input, and so differentiable, although Paddle's result asks for no gradient."""
    return torch.diag_embed(input, offset, dim1, dim2)


@api("paddle.diagonal", "paddle.Tensor.diagonal")
def diagonal(x, offset=0, axis1=0, axis2=1, name=None):
    return torch.diagonal(x, offset, axis1, axis2)


@api("paddle.diagonal_scatter", "paddle.Tensor.diagonal_scatter")
def diagonal_scatter(x, y, offset=0, axis1=0, axis2=1, name=None):
    return torch.diagonal_scatter(x, y, offset, axis1, axis2)


@api("paddle.Tensor.fill_diagonal_tensor", "paddle.Tensor.fill_diagonal_tensor_")
def fill_diagonal_tensor(x, y, offset=0, dim1=0, dim2=1, name=None):
    return torch.diagonal_scatter(x, y, offset, dim1, dim2)


@api("paddle.Tensor.fill_diagonal_")
def fill_diagonal_(x, value, offset=0, wrap=False, name=None):
    """The main diagonal of all axes; a tall matrix that wraps begins it anew below."""
    columns = x.shape[1]
    step = max(1, sum(_strides(x.shape)))
    end = x.numel() if wrap or x.ndim > 2 else min(x.numel(), columns * columns)
    places = [at + offset for at in range(0, end, step) if 0 <= at % columns + offset < columns]
    return x.reshape(-1).index_fill(0, torch.tensor(places, dtype=torch.int64), value).reshape(x.shape)


def _strides(shape):
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides
