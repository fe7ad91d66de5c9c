"""Diagonals and triangles."""

from assay.reference import torch
from assay.registry import api, same
from assay.shorthand import IN_PLACE, PUBLIC, spread

same("x, diagonal=0, name=None, *, out=None", *spread("tril", *PUBLIC, *IN_PLACE))


same("x, diagonal=0, name=None, *, out=None", *spread("triu", *PUBLIC, *IN_PLACE))


@api(*spread("diag", *PUBLIC))
def diag(x, offset=0, padding_value=0, name=None):
    """A matrix with this diagonal for a vector or a number; the diagonal for a matrix."""
    if x.ndim > 1:
        return torch.diag(x, offset)
    extent = x.numel() + abs(offset)
    padding = torch.full((extent, extent), padding_value, dtype=x.dtype)
    return torch.diagonal_scatter(padding, x.reshape(-1), offset)


same("x, offset=0, name=None", *spread("diagflat", *PUBLIC))


# Differentiable, although Paddle's result has stop_gradient set.
same("input, offset=0, dim1=-2, dim2=-1", *spread("diag_embed", *PUBLIC))


same("x, offset=0, axis1=0, axis2=1, name=None", *spread("diagonal", *PUBLIC))


same("x, y, offset=0, axis1=0, axis2=1, name=None", *spread("diagonal_scatter", *PUBLIC))


same(
    "x, y, offset=0, dim1=0, dim2=1, name=None",
    *spread("fill_diagonal_tensor fill_diagonal_tensor_", "paddle.Tensor.{}"),
    to="torch.diagonal_scatter",
)


@api("paddle.Tensor.fill_diagonal_")
def fill_diagonal_(x, value, offset=0, wrap=False, name=None):
    """The main diagonal of all axes. With `wrap` the diagonal of a tall matrix starts again below."""
    columns = x.shape[1]
    step = max(1, sum(_strides(x.shape)))
    end = x.numel() if wrap or x.ndim > 2 else min(x.numel(), columns * columns)
    places = torch.arange(0, end, step)
    column = places % columns + offset
    places = places[(column >= 0) & (column < columns)] + offset
    return x.reshape(-1).index_fill(0, places, value).reshape(x.shape)


def _strides(shape):
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides
