"""Products of vectors, matrices and tensors."""

from assay.arguments import as_ints, in_float32
from assay.known_deviation import follows
from assay.reference import torch
from assay.regimes import FORWARD_ONLY
from assay.registry import api, same
from assay.rules import literal
from assay.shorthand import FACTORS, IN_PLACE, LINALG, PUBLIC, short_factors, spread
from assay.spec import TensorSpec

SHORT = {"x": short_factors, "y": short_factors}


def turned(matrix, transpose):
    return matrix.mT if transpose and matrix.ndim > 1 else matrix


def matched(x, y):
    """A real factor of a complex one is converted to complex; other dtypes must agree."""
    if x.is_complex() == y.is_complex():
        return x, y
    common = torch.promote_types(x.dtype, y.dtype)
    return x.to(common), y.to(common)


@api("paddle.matmul", *spread("matmul", *LINALG), cost="matmul", **SHORT)
def matmul(x, y, transpose_x=False, transpose_y=False, name=None, *, out=None):
    return torch.matmul(*matched(turned(x, transpose_x), turned(y, transpose_y)))


@api(
    "paddle.Tensor.__matmul__",
    cost="matmul",
    known_deviation=follows("the left operand decides the dtype, unless one operand is complex"),
    **SHORT,
)
def matmul_operator(x, y):
    x, y = matched(x, y)
    return torch.matmul(x, y.to(x.dtype))


@api("paddle.Tensor.__rmatmul__", **SHORT)
def matmul_from_right(x, y):
    return torch.matmul(y.to(x.dtype), x)


@api(*spread("mm", *PUBLIC), cost="matmul", input=short_factors, mat2=short_factors)
def mm(input, mat2, name=None):
    return torch.matmul(*matched(input, mat2))


same("x, y, name=None, *, out=None", *spread("bmm", *PUBLIC), cost="matmul", **SHORT)


same("x, vec, name=None", "paddle.mv paddle.Tensor.mv", x=short_factors, vec=short_factors)
same("x, y, name=None", "paddle.inner paddle.Tensor.inner", **SHORT)


same(
    "x, y, name=None",
    *spread("kron", *PUBLIC),
    cost="product",
    x=FACTORS,
    y=FACTORS,
    traits={"sums": False},
)


@api(*spread("dot", *PUBLIC), **SHORT)
def dot(x, y, name=None, *, out=None):
    """The product of each pair of rows, without conjugation."""
    return torch.sum(x * y, -1, dtype=x.dtype)


@api("paddle.vecdot", "paddle.linalg.vecdot", **SHORT)
def vecdot(x, y, axis=-1, name=None):
    return torch.sum(x.conj() * y, axis)


@api(*spread("outer", *PUBLIC), "paddle.ger", cost="product", x=FACTORS, y=FACTORS)
def outer(x, y, name=None, *, out=None):
    return torch.outer(x.reshape(-1), y.reshape(-1))


@api(*spread("cross", *PUBLIC), "paddle.linalg.cross", x=FACTORS, y=FACTORS)
def cross(x, y, axis=9, name=None):
    """axis=9 stands for the first axis of extent 3."""
    return torch.linalg.cross(x, y, dim=x.shape.index(3) if axis == 9 else axis)


def _unused(beta=1.0, alpha=1.0):
    return "whether a factor of 0 hides NaN is not specified" if 0 in (beta, alpha) else None


FACTOR_0 = {"undefined": dict.fromkeys(FORWARD_ONLY, _unused)}


@api(*spread("addmm", *PUBLIC, *IN_PLACE), **SHORT, **FACTOR_0)
def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    return beta * input + alpha * torch.matmul(x, y)


@api(*spread("baddbmm", *PUBLIC, *IN_PLACE), **SHORT, **FACTOR_0)
def baddbmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    return beta * input + alpha * torch.bmm(x, y)


same("x, name=None", *spread("multi_dot", *LINALG), home="torch.linalg", x=short_factors)


@api("paddle.einsum")
def einsum(equation, *operands):
    return torch.einsum(equation, *operands)


def contracted(x, y, axes, this):
    """Axes given as tensors: the last axes of `x` with the first of `y`, or axes of equal extent."""
    if isinstance(axes, TensorSpec) or len(axes) == 1:
        equal = [axis for axis in range(min(x.ndim, y.ndim)) if x.shape[axis] == y.shape[axis]]
        return (equal + [0] * this.size)[: this.size]
    return range(this.size) if this == axes[1] else range(x.ndim - this.size, x.ndim)


@api(*spread("tensordot", *PUBLIC), axes=literal(contracted), **SHORT)
def tensordot(x, y, axes=2, name=None):
    """One row of axes serves both tensors; the shorter of two rows is completed from the longer."""
    if isinstance(axes, int):
        return torch.tensordot(x, y, axes)
    axes = axes.tolist() if isinstance(axes, torch.Tensor) else axes
    if not axes or isinstance(axes[0], int):
        axes = [axes]
    left, right = (as_ints(row) for row in (axes[0], axes[1] if len(axes) > 1 else []))
    return torch.tensordot(x, y, (left + right[len(left) :], right + left[len(right) :]))


@api(*spread("trace", *PUBLIC))
def trace(x, offset=0, axis1=0, axis2=1, name=None):
    return torch.diagonal(x, offset, axis1, axis2).sum(-1, dtype=x.dtype)


@api(*spread("vander", *PUBLIC))
def vander(x, n=None, increasing=False, name=None):
    """PyTorch's function is not differentiable."""
    n = len(x) if n is None else n
    columns = torch.cat([torch.ones_like(x)[:, None], x[:, None].expand(-1, max(n - 1, 0))], 1)
    powers = columns.cumprod(1, dtype=x.dtype)[:, :n]
    return powers if increasing else powers.flip(1)


@api("paddle.linalg.matrix_exp")
def matrix_exp(x, name=None):
    return in_float32(torch.linalg.matrix_exp, x)


@api("paddle.nn.functional.linear", cost="matmul", x=short_factors, weight=short_factors)
def linear(x, weight, bias=None, name=None):
    result = torch.matmul(x, weight)
    return result if bias is None else result + bias


@api("paddle.nn.functional.bilinear", x1=FACTORS, x2=FACTORS)
def bilinear(x1, x2, weight, bias=None, name=None):
    result = torch.einsum("ni,kij,nj->nk", x1, weight, x2)
    return result if bias is None else result + bias
