"""Sparse tensors: functions of their values, of their indices, and of two of them."""

from math import prod

from assay.apis.decomposition import best_principal, parts_of, principal_parts
from assay.arguments import as_axes, as_dtype, as_int, as_ints
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, positive
from assay.shorthand import COUNTS, MADE_CSR, NO_BACKWARD, UP_TO_SIGN, reals
from assay.sparse import Sparse, taken_from
from assay.spec import TensorSpec

COO = {"x": "coo"}
# Elementwise over the stored values, of which there are fewer than the case states.
BY_VALUE = {"sums": False, "terms": 1.0, "near_one": 0.5}
OF_VALUE = dict.fromkeys(("sin", "sinh", "asinh", "atan"), BY_VALUE | {"direct": True})
# Their gradients are 1 minus or plus a square.
OF_VALUE |= dict.fromkeys(("tan", "tanh", "expm1"), BY_VALUE | {"near_one": 1.0})
_OVER_POSITIVE = {"sqrt": reals(positive())}


def _infinite(x):
    """Products of complex numbers that overflow in one part are undefined."""
    is_complex = x.dtype.startswith("complex")
    return "the result for a complex number with an infinite part is not specified" if is_complex else ""


def _by_value(name, function, **rules):
    @api(f"paddle.sparse.{name}", layouts=COO, traits=OF_VALUE.get(name, BY_VALUE), **rules)
    def unary(x, name=None):
        return x.over(function)


for _name in "sin tan asin atan tanh asinh atanh sqrt square log1p abs neg deg2rad rad2deg expm1".split():
    _by_value(
        _name,
        lambda values, name=_name: getattr(torch, name)(values),
        **({"x": _OVER_POSITIVE[_name]} if _name in _OVER_POSITIVE else {}),
        undefined={"wide": _infinite} if _name == "expm1" else {},
    )
# In float64, because PyTorch's function overflows too early.
_by_value(
    "sinh",
    lambda values: torch.sinh(values.to(torch.promote_types(values.dtype, torch.float64))).to(values.dtype),
)
_by_value("isnan", lambda values: torch.isnan(values), grad=COUNTS)


@api("paddle.sparse.pow", layouts=COO, traits=BY_VALUE, x=positive(0.5, 1.5))
def power(x, factor, name=None):
    return x.over(lambda values: values**factor)


@api("paddle.sparse.cast", layouts=COO, traits=BY_VALUE)
def cast(x, index_dtype=None, value_dtype=None, name=None):
    indices = x.indices if index_dtype is None else x.indices.to(as_dtype(index_dtype))
    values = x.values if value_dtype is None else x.values.to(as_dtype(value_dtype))
    return x._replace(indices=indices, values=values)


_by_value("nn.functional.relu", lambda values: torch.relu(values))
_by_value("nn.functional.relu6", lambda values: torch.nn.functional.relu6(values))


@api("paddle.sparse.nn.functional.leaky_relu", layouts=COO, traits=BY_VALUE)
def leaky_relu(x, negative_slope=0.01, name=None):
    return x.over(lambda values: torch.nn.functional.leaky_relu(values, negative_slope))


@api("paddle.sparse.nn.functional.softmax", layouts=COO)
def softmax(x, axis=-1, name=None):
    """Over the stored values; a row without values stays empty."""
    held = x.held()
    scores = x.dense().masked_fill(~held, -torch.inf)
    return taken_from(torch.softmax(scores, axis), held)


# -- places --


@api("paddle.sparse.transpose", layouts=COO)
def transpose(x, perm, name=None):
    return taken_from(x.dense().permute(*as_ints(perm)), x.held().permute(*as_ints(perm)))


def _extents(shape, x):
    """0 keeps an extent, -1 is the rest."""
    return [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(as_ints(shape))]


@api("paddle.sparse.reshape", layouts=COO)
def reshape(x, shape, name=None):
    shape = _extents(shape, x)
    return taken_from(x.dense().reshape(shape), x.held().reshape(shape))


@api("paddle.sparse.slice", layouts=COO)
def cut(x, axes, starts, ends, name=None):
    dense, held = x.dense(), x.held()
    for axis, start, end in zip(as_ints(axes), as_ints(starts), as_ints(ends), strict=True):
        wanted = range(x.shape[axis])[start:end]
        dense, held = (each.narrow(axis, wanted.start, len(wanted)) for each in (dense, held))
    return taken_from(dense, held)


@api("paddle.sparse.coalesce", "paddle.Tensor.coalesce", layouts={"x": "uncoalesced"}, grad=NO_BACKWARD)
def coalesce(x, name=None):
    """Values at equal indices are added; indices are sorted."""
    return taken_from(x.dense(), x.held())


@api("paddle.sparse.sum", layouts=COO)
def total(x, axis=None, dtype=None, keepdim=False, name=None):
    """Empty sums are not stored; the sum of everything has one index."""
    x = x if dtype is None else x.over(lambda values: values.to(as_dtype(dtype)))
    axes = as_axes(axis)
    if axes is None or (len(x.shape) == 1 and not keepdim):
        shape = [1] * len(x.shape) if keepdim else [1]
        return taken_from(x.values.sum().reshape(shape), torch.ones(shape, dtype=torch.bool))
    held = x.held().sum(axes, keepdim=keepdim) > 0
    return taken_from(x.dense().sum(axes, keepdim=keepdim), held)


@api("paddle.sparse.is_same_shape", "paddle.Tensor.is_same_shape", layouts={"x": "coo", "y": "coo"})
def is_same_shape(x, y):
    return tuple(x.shape) == tuple(y.shape)


# -- made of their parts --


def _coordinates(shape, this):
    """As many distinct, sorted indices as there are columns."""
    axes, count = this.shape
    size = prod(shape[:axes])
    places = [place * size // count for place in range(count)]
    rows, stride = [], size
    for extent in shape[:axes]:
        stride //= extent
        rows += [place // stride % extent for place in places]
    return Literal(rows)


@api("paddle.sparse.sparse_coo_tensor", indices=lambda shape, this: _coordinates(shape, this))
def sparse_coo_tensor(indices, values, shape=None, dtype=None, place=None, stop_gradient=True):
    """A copy. The values have a gradient only with stop_gradient=False."""
    values = values.to(as_dtype(dtype) or values.dtype)
    shape = as_ints(shape) if shape is not None else (indices.amax(1) + 1).tolist()
    return Sparse(indices, values.detach() if stop_gradient else values, tuple(shape))


def _columns(count, rows):
    begins = [count * row // rows for row in range(rows + 1)]
    return [column for row in range(rows) for column in range(begins[row + 1] - begins[row])]


@api(
    "paddle.sparse.sparse_csr_tensor",
    crows=lambda cols, this: Literal([cols.size * i // (this.size - 1) for i in range(this.size)]),
    cols=lambda crows, this: Literal(_columns(this.size, crows.size - 1)),
    grad=MADE_CSR,
)
def sparse_csr_tensor(crows, cols, values, shape, dtype=None, place=None, stop_gradient=True):
    """Columns count up from 0 in each row."""
    rows = torch.arange(len(crows) - 1).repeat_interleave(crows.diff())
    inside = torch.arange(len(cols)) - crows.long()[rows]
    values = values.to(as_dtype(dtype) or values.dtype)
    return Sparse(torch.stack([rows, inside]), values, tuple(as_ints(shape)), "csr")


# -- two of them --


def _apart(y, this):
    """Images whose channels get a bias store whole rows of channels."""
    return "hybrid" if isinstance(y, TensorSpec) and y.shape != this.shape else "coo"


def _beside(x, this):
    """A bias for each channel is dense."""
    return "coo" if this.shape == x.shape else None


def _both(name, function):
    @api(f"paddle.sparse.{name}", layouts={"x": _apart, "y": _beside})
    def binary(x, y, name=None):
        """Over the indices that either operand stores."""
        if not isinstance(y, Sparse):
            return x.over(lambda values: function(values, y))
        return taken_from(function(x.dense(), y.dense()), x.held() | y.held())


_both("add", lambda x, y: x + y)
_both("subtract", lambda x, y: x - y)
_both("multiply", lambda x, y: x * y)


@api(
    "paddle.sparse.divide",
    layouts={"x": "coo", "y": ("coo", 0)},
    y=positive(0.5, 1.5),
    known_deviation=follows("positions that neither operand stores become NaN (0 / 0)"),
)
def divide(x, y, name=None):
    """Integers become fractions."""
    if not isinstance(y, Sparse):
        return x.over(lambda values: values / y)
    return taken_from(x.dense() / y.dense(), torch.ones(x.shape, dtype=torch.bool))


# -- products --


@api("paddle.sparse.matmul", layouts={"x": "csr"}, grad=MADE_CSR)
def matmul(x, y, name=None):
    return x.dense() @ y


@api("paddle.sparse.mv", layouts={"x": "csr"}, grad=MADE_CSR)
def mv(x, vec, name=None):
    return x.dense() @ vec


@api("paddle.sparse.addmm", layouts={"x": "csr"}, grad=MADE_CSR)
def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    return beta * input + alpha * (x.dense() @ y)


@api("paddle.sparse.mask_as", layouts={"mask": "coo"})
def mask_as(x, mask, name=None):
    return Sparse(mask.indices, x[tuple(mask.indices)], mask.shape)


@api("paddle.sparse.masked_matmul", layouts={"mask": "csr"})
def masked_matmul(x, y, mask, name=None):
    return taken_from(x @ y, mask.held(), "csr")


def _principal(found, given):
    q = given.get("q")
    dense = given["x"].to_dense()
    return principal_parts(dense, found, q if q is None else int(q), given.get("center", True), whole=False)


@api("paddle.sparse.pca_lowrank", layouts=COO, grad=UP_TO_SIGN, shown=_principal)
def pca_lowrank(x, q=None, center=True, niter=2, name=None):
    dense = x.dense()
    q = parts_of(dense, q if q is None else as_int(q))
    return principal_parts(dense, best_principal(dense, q, center), q, center, whole=False)


@api("paddle.sparse.nn.functional.attention", layouts={"sparse_mask": "csr"})
def attention(query, key, value, sparse_mask, key_padding_mask=None, attn_mask=None, name=None):
    """A mask of 0 hides a position; only stored positions of the sparse mask count."""
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    hidden = ~sparse_mask.held().reshape(scores.shape)
    if key_padding_mask is not None:
        hidden = hidden | (key_padding_mask[:, None, None] == 0)
    if attn_mask is not None:
        hidden = hidden | (attn_mask == 0)
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
    return weights.nan_to_num(0.0) @ value
