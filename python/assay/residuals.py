"""Residuals of matrix factors: how well factors satisfy their defining equations.

Factors are not unique: signs, phases, completions of a basis and vectors of close eigenvalues vary. The
equations A = USVᴴ and AV = VΛ and the orthonormality of a basis hold for all of them. A residual is computed
in float64, in units of the largest element of A times the longest extent; LAPACK's own tests use the same
unit and accept 30. Each residual is returned as 1 + residual in the dtype of the factors, so that it can be
compared in ulps. The same functions are applied to both frameworks.
"""

from collections.abc import Callable
from typing import Any

from assay.orders import np

Arrays = dict[str, Any]


def array_of(tensor: Any) -> Any:
    """A tensor of either framework as an array in double precision."""
    found = np.asarray(tensor.detach().cpu().numpy())
    return found.astype(np.complex128 if np.iscomplexobj(found) else np.float64)


def adjoint(matrix: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return np.conj(np.swapaxes(matrix, -1, -2))


def left_over(difference: Any, scale: Any, dtype: Any) -> Any:
    """1 + the largest element of `difference`, in units of the largest element of `scale` times the longest
    extent."""
    if not difference.size:
        return np.ones(1, dtype)
    unit = np.abs(scale).max() * max(*difference.shape[-2:], *scale.shape[-2:])
    return np.asarray([1 + np.abs(difference).max() / (unit or 1)], dtype)


def orthonormal(basis: Any, dtype: Any) -> Any:
    """The residual of BᴴB = 1."""
    one = np.eye(basis.shape[-1])
    return left_over(adjoint(basis) @ basis - one, one if one.size else np.ones((1, 1)), dtype)


def real_dtype(tensor: Any) -> Any:
    """The tensor's dtype, or that of its real part."""
    return np.asarray(tensor.detach().cpu().numpy()).real.dtype


def shape_of(tensor: Any) -> list[int]:
    """The tensor's extents as Python integers."""
    return [int(extent) for extent in tensor.shape]


def of_svd(x: Any, u: Any, values: Any, vh: Any) -> Arrays:
    """The residuals of x = U diag(values) Vᴴ. For fewer values than the rank, only the bases are judged."""
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
    """The residuals of approximate factors of the array A: Uᴴ A V = diag(values) for any quality of the
    approximation, and A = U diag(values) Vᴴ if the parts are the `whole` of A."""
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
    """The residual of A V = V diag(values) for the array A, and `measure` of V."""
    middle, basis = array_of(values), array_of(vectors)
    dtype = real_dtype(vectors)
    return {
        "vectors": shape_of(vectors),
        "dtype": vectors.dtype,
        "columns": measure(basis, dtype),
        "residual": left_over(matrix @ basis - basis * middle[..., None, :], matrix, dtype),
    }


def unit_columns(basis: Any, dtype: Any) -> Any:
    """The residual of columns of length 1."""
    lengths = np.sqrt((np.abs(basis) ** 2).sum(-2, keepdims=True))
    return left_over(lengths - 1, np.ones((1, 1)), dtype)


def triangle(x: Any, lower: bool) -> Any:
    """The Hermitian matrix that one triangle of x defines."""
    matrix = array_of(x)
    half = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.real(np.diagonal(matrix, axis1=-2, axis2=-1))
    return half + adjoint(half) + diagonal[..., None] * np.eye(matrix.shape[-1])


def pointed_at(x: Any, found: Any, axis: int) -> tuple[Any, Any, Any]:
    """The values, the elements of x that `found`'s indices select along an axis, flattened, and the
    indices."""
    values, index = found
    source, place = (tensor.detach().cpu().numpy() for tensor in (x, index))
    if place.ndim < source.ndim:
        place = np.expand_dims(place, axis)
    pointed = np.take_along_axis(source, place, axis) if source.ndim else source
    return values, pointed.reshape(-1), index
