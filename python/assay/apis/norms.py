"""Norms, renormalisation and distances."""

from assay.apis.reduction import axes_of
from assay.arguments import as_axes, as_dtype, in_float32
from assay.reference import torch
from assay.regimes import FORWARD_ONLY
from assay.registry import api, same
from assay.shorthand import IN_PLACE, PUBLIC, spread

ROWS = {"rows": True}


@api("paddle.linalg.vector_norm", traits=ROWS)
def vector_norm(x, p=2.0, axis=None, keepdim=False, name=None, *, dtype=None, out=None):
    """The norm of an empty tensor is 0 for every positive p; PyTorch rejects infinity there."""
    p = 2.0 if x.numel() == 0 and p > 0 else p
    return torch.linalg.vector_norm(x, p, axes_of(x, axis), keepdim, dtype=as_dtype(dtype))


def of_matrix(p, axes):
    """Whether the norm is one of singular values."""
    return p == "nuc" or p in (2, -2) and isinstance(axes, list | tuple) and len(axes) == 2


def _refused(p, axes):
    return "an SVD of a matrix with NaN or infinity may raise an error" if of_matrix(p, axes) else None


# LAPACK raises an error there; GPU libraries may not.
OF_MATRIX = dict.fromkeys(FORWARD_ONLY, lambda p="fro", axis=(-2, -1): _refused(p, axis))
OF_EITHER = dict.fromkeys(FORWARD_ONLY, lambda p=None, axis=None: _refused(p, axis))


OF_A_MATRIX = ROWS | {"spectral": lambda p="fro", axis=(-2, -1): of_matrix(p, axis)}
OF_ANY = ROWS | {"spectral": lambda p=None, axis=None: of_matrix(p, axis)}


@api("paddle.linalg.matrix_norm", traits=OF_A_MATRIX, undefined=OF_MATRIX)
def matrix_norm(x, p="fro", axis=(-2, -1), keepdim=False, name=None):
    return in_float32(lambda x: torch.linalg.matrix_norm(x, p, tuple(axis), keepdim), x)


@api(*spread("norm", *PUBLIC), "paddle.linalg.norm", traits=OF_ANY, undefined=OF_EITHER)
def norm(x, p=None, axis=None, keepdim=False, out=None, dtype=None, name=None):
    """A matrix norm for two axes or p="nuc", else a vector norm; over all elements without an axis."""
    axes = as_axes(axis)
    if p == "nuc" or isinstance(axes, tuple) and len(axes) == 2:
        return matrix_norm(x, "fro" if p is None else p, axes or (-2, -1), keepdim)
    return vector_norm(x, 2.0 if p in (None, "fro") else p, axis, keepdim, dtype=dtype)


same("x, p, axis, max_norm", *spread("renorm", *PUBLIC, *IN_PLACE))


@api(*spread("dist", *PUBLIC), traits=ROWS)
def dist(x, y, p=2, name=None):
    return vector_norm(x - y, p)


same('x, y, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary", name=None', *spread("cdist", *PUBLIC))


same("x, p=2.0, name=None", "paddle.pdist", home="torch.nn.functional")
