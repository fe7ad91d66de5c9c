"""How well the factors of a matrix do what they promise: each promise as one number, 1 and what is left over.

Factors are not unique: signs, phases, what completes a basis, vectors of values that lie close together. What
is promised is A = USVᴴ, AV = VΛ, and that bases are orthonormal. A residual is taken in float64 from the
factors as they are, and given in units of the largest element of A times the longest extent, by which the
errors of such algorithms grow (LAPACK's own tests hold it against 30 such units); rounded to the factors'
dtype, 1 and a residual is 1 or a few ulps more. The same function looks at both frameworks' factors.
"""

from collections.abc import Callable
from typing import Any

try:
    import numpy as np
except ModuleNotFoundError:  # the tables are read without frameworks as well, and nothing is called there
    np: Any = None

Arrays = dict[str, Any]


def array_of(tensor: Any) -> Any:
    """A tensor of either framework, on any device, in double precision."""
    found = np.asarray(tensor.detach().cpu().numpy())
    return found.astype(np.complex128 if np.iscomplexobj(found) else np.float64)


def adjoint(matrix: Any) -> Any:
    return np.conj(np.swapaxes(matrix, -1, -2))


def left_over(difference: Any, scale: Any, dtype: Any) -> Any:
    """1 and the largest element of the difference, in units of the largest of `scale` times its extents."""
    if not difference.size:
        return np.ones(1, dtype)
    unit = np.abs(scale).max() * max(*difference.shape[-2:], *scale.shape[-2:])
    return np.asarray([1 + np.abs(difference).max() / (unit or 1)], dtype)


def orthonormal(basis: Any, dtype: Any) -> Any:
    """Whether the columns are."""
    one = np.eye(basis.shape[-1])
    return left_over(adjoint(basis) @ basis - one, one if one.size else np.ones((1, 1)), dtype)


def real_dtype(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().numpy()).real.dtype


def shape_of(tensor: Any) -> list[int]:
    return [int(extent) for extent in tensor.shape]


def of_svd(x: Any, u: Any, values: Any, vh: Any) -> Arrays:
    """x = U diag(values) Vᴴ, or its best part of fewer values, for which only the bases are judged."""
    left, middle, right = array_of(u), array_of(values), array_of(vh)
    count = middle.shape[-1]
    dtype = real_dtype(values)
    shown = {
        "u": shape_of(u),
        "vh": shape_of(vh),
        "dtypes": [u.dtype, vh.dtype],
        "columns of u": orthonormal(left, dtype),
        "rows of vh": orthonormal(adjoint(right), dtype),
    }
    matrix = array_of(x)
    if count == min(matrix.shape[-2:]):
        product = (left[..., :count] * middle[..., None, :]) @ right[..., :count, :]
        shown["product"] = left_over(matrix - product, matrix, dtype)
    return shown


def of_low_rank(matrix: Any, u: Any, values: Any, v: Any, whole: bool) -> Arrays:
    """The best parts U diag(values) Vᴴ of the array A, found from random samples: Uᴴ A V = diag(values)
    however well they were found; where A has no more rank than there are parts they are the `whole` of it."""
    left, middle, right = array_of(u), array_of(values), array_of(v)
    dtype = real_dtype(values)
    shown = {
        "u": shape_of(u),
        "v": shape_of(v),
        "dtypes": [u.dtype, v.dtype],
        "columns of u": orthonormal(left, dtype),
        "columns of v": orthonormal(right, dtype),
    }
    found = left * middle[..., None, :]
    core = adjoint(left) @ (matrix @ right - found)
    shown["core"] = left_over(core, matrix, dtype)
    if whole:
        shown["product"] = left_over(matrix - found @ adjoint(right), matrix, dtype)
    return shown


def of_eigen(matrix: Any, values: Any, vectors: Any, measure: Callable[[Any, Any], Any]) -> Arrays:
    """A V = V diag(values) of the array A, and what `measure` says of V."""
    middle, basis = array_of(values), array_of(vectors)
    dtype = real_dtype(vectors)
    return {
        "vectors": shape_of(vectors),
        "dtype": vectors.dtype,
        "columns": measure(basis, dtype),
        "residual": left_over(matrix @ basis - basis * middle[..., None, :], matrix, dtype),
    }


def unit_columns(basis: Any, dtype: Any) -> Any:
    """The length of each column is 1."""
    lengths = np.sqrt((np.abs(basis) ** 2).sum(-2, keepdims=True))
    return left_over(lengths - 1, np.ones((1, 1)), dtype)


def triangle(x: Any, lower: bool) -> Any:
    """The Hermitian matrix of which only this triangle is read."""
    matrix = array_of(x)
    half = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.real(np.diagonal(matrix, axis1=-2, axis2=-1))
    return half + adjoint(half) + diagonal[..., None] * np.eye(matrix.shape[-1])


def pointed_at(x: Any, found: Any, axis: int) -> tuple[Any, Any, Any]:
    """Values of x along an axis, what stands where their indices point in one row, and the indices."""
    values, index = found
    source, place = (tensor.detach().cpu().numpy() for tensor in (x, index))
    if place.ndim < source.ndim:
        place = np.expand_dims(place, axis)
    pointed = np.take_along_axis(source, place, axis) if source.ndim else source
    return values, pointed.reshape(-1), index
