"""Products of vectors, matrices and tensors."""

from assay.accommodations import follows
from assay.arguments import as_ints, in_float32
from assay.reference import torch
from assay.registry import api, same
from assay.rules import literal
from assay.shorthand import FACTORS, short_factors
from assay.spec import TensorSpec

SHORT = {"x": short_factors, "y": short_factors}


def turned(matrix, transpose):
    return matrix.mT if transpose and matrix.ndim > 1 else matrix


def matched(x, y):
    """A real factor of a complex one counts as complex; other dtypes must agree."""
    if x.is_complex() == y.is_complex():
        return x, y
    common = torch.promote_types(x.dtype, y.dtype)
    return x.to(common), y.to(common)


@api("paddle.matmul", "paddle.linalg.matmul", "paddle.Tensor.matmul", **SHORT)
def matmul(x, y, transpose_x=False, transpose_y=False, name=None, *, out=None):
    return torch.matmul(*matched(turned(x, transpose_x), turned(y, transpose_y)))


@api(
    "paddle.Tensor.__matmul__",
    accommodates=follows("the left operand decides the dtype, unless one operand is complex"),
    **SHORT,
)
def matmul_operator(x, y):
    x, y = matched(x, y)
    return torch.matmul(x, y.to(x.dtype))


@api("paddle.Tensor.__rmatmul__", **SHORT)
def matmul_from_right(x, y):
    return torch.matmul(y.to(x.dtype), x)


@api("paddle.mm", "paddle.Tensor.mm", input=short_factors, mat2=short_factors)
def mm(input, mat2, name=None):
    return torch.matmul(*matched(input, mat2))


@api("paddle.bmm", "paddle.Tensor.bmm", **SHORT)
def bmm(x, y, name=None, *, out=None):
    return torch.bmm(x, y)


same("x, vec, name=None", "paddle.mv paddle.Tensor.mv", x=short_factors, vec=short_factors)
same("x, y, name=None", "paddle.inner paddle.Tensor.inner", **SHORT)


@api("paddle.kron", "paddle.Tensor.kron", x=FACTORS, y=FACTORS, traits={"sums": False})
def kron(x, y, name=None):
    return torch.kron(x, y)


@api("paddle.dot", "paddle.Tensor.dot", **SHORT)
def dot(x, y, name=None, *, out=None):
    """Of every pair of rows; complex numbers are not conjugated."""
    return torch.sum(x * y, -1, dtype=x.dtype)


@api("paddle.vecdot", "paddle.linalg.vecdot", **SHORT)
def vecdot(x, y, axis=-1, name=None):
    return torch.sum(x.conj() * y, axis)


@api("paddle.outer", "paddle.Tensor.outer", "paddle.ger", x=FACTORS, y=FACTORS)
def outer(x, y, name=None, *, out=None):
    return torch.outer(x.reshape(-1), y.reshape(-1))


@api("paddle.cross", "paddle.Tensor.cross", "paddle.linalg.cross", x=FACTORS, y=FACTORS)
def cross(x, y, axis=9, name=None):
    """9 stands for the first axis of length 3."""
    return torch.linalg.cross(x, y, dim=x.shape.index(3) if axis == 9 else axis)


@api("paddle.addmm", "paddle.addmm_", "paddle.Tensor.addmm", "paddle.Tensor.addmm_", **SHORT)
def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    return beta * input + alpha * torch.matmul(x, y)


@api("paddle.baddbmm", "paddle.baddbmm_", "paddle.Tensor.baddbmm", "paddle.Tensor.baddbmm_", **SHORT)
def baddbmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    return beta * input + alpha * torch.bmm(x, y)


@api("paddle.linalg.multi_dot", "paddle.Tensor.multi_dot", x=short_factors)
def multi_dot(x, name=None):
    return torch.linalg.multi_dot(x)


@api("paddle.einsum")
def einsum(equation, *operands):
    return torch.einsum(equation, *operands)


def contracted(x, y, axes, this):
    """Axes given as tensors: the last of `x` against the first of `y`, or those where both agree."""
    if isinstance(axes, TensorSpec) or len(axes) == 1:
        equal = [axis for axis in range(min(x.ndim, y.ndim)) if x.shape[axis] == y.shape[axis]]
        return (equal + [0] * this.size)[: this.size]
    return range(this.size) if this == axes[1] else range(x.ndim - this.size, x.ndim)


@api("paddle.tensordot", "paddle.Tensor.tensordot", axes=literal(contracted), **SHORT)
def tensordot(x, y, axes=2, name=None):
    """One row of axes serves both sides; of two rows the shorter is filled up from the longer."""
    if isinstance(axes, int):
        return torch.tensordot(x, y, axes)
    axes = axes.tolist() if isinstance(axes, torch.Tensor) else axes
    if not axes or isinstance(axes[0], int):
        axes = [axes]
    left, right = (as_ints(row) for row in (axes[0], axes[1] if len(axes) > 1 else []))
    return torch.tensordot(x, y, (left + right[len(left) :], right + left[len(right) :]))


@api("paddle.trace", "paddle.Tensor.trace")
def trace(x, offset=0, axis1=0, axis2=1, name=None):
    return torch.diagonal(x, offset, axis1, axis2).sum(-1, dtype=x.dtype)


@api("paddle.vander", "paddle.Tensor.vander")
def vander(x, n=None, increasing=False, name=None):
    """Not torch's, which cannot be differentiated."""
    n = len(x) if n is None else n
    columns = torch.cat([torch.ones_like(x)[:, None], x[:, None].expand(-1, max(n - 1, 0))], 1)
    powers = columns.cumprod(1, dtype=x.dtype)[:, :n]
    return powers if increasing else powers.flip(1)


@api("paddle.linalg.matrix_exp")
def matrix_exp(x, name=None):
    return in_float32(torch.linalg.matrix_exp, x)


@api("paddle.nn.functional.linear", x=short_factors, weight=short_factors)
def linear(x, weight, bias=None, name=None):
    result = torch.matmul(x, weight)
    return result if bias is None else result + bias


@api("paddle.nn.functional.bilinear", x1=FACTORS, x2=FACTORS)
def bilinear(x1, x2, weight, bias=None, name=None):
    result = torch.einsum("ni,kij,nj->nk", x1, weight, x2)
    return result if bias is None else result + bias
