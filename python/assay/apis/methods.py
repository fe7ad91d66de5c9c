"""Tensor methods: casts, properties, copies, and methods of sparse tensors."""

from math import prod

from assay import draw_distribution
from assay.apis.casting import castable
from assay.apis.shape import OF_MEMORY
from assay.arguments import as_dtype, as_int, as_ints
from assay.known_deviation import avoids
from assay.reference import torch
from assay.regimes import DRAWN, OTHERS
from assay.registry import api, same
from assay.rules import integers, positive
from assay.shorthand import MADE_CSR, NO_BACKWARD, OUTSIDE_GRAPH, PUBLIC, RANDOM, spread
from assay.sparse import taken_from

_CASTS = {
    "bool": "bool", "byte": "uint8", "uint8": "uint8", "char": "int8", "int8": "int8", "short": "int16",
    "int16": "int16", "int": "int32", "int32": "int32", "long": "int64", "int64": "int64",
    "half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32",
    "float32": "float32", "double": "float64", "float64": "float64", "cfloat": "complex64",
    "complex64": "complex64", "cdouble": "complex128", "complex128": "complex128",
}  # fmt: skip


def _cast(name, dtype):
    @api(f"paddle.Tensor.{name}", rules={"self": lambda this: castable(this, dtype)})
    def cast(self):
        return self.to(getattr(torch, dtype))


for _name, _dtype in _CASTS.items():
    _cast(_name, _dtype)


@api("paddle.Tensor.type_as", rules={"self": lambda other, this: castable(this, other.dtype)})
def type_as(self, other):
    return self.to(other.dtype)


@api("paddle.Tensor.to", rules={"self": lambda dtype=None, *, this: castable(this, dtype)})
def to(self, dtype=None, *args, **kwargs):
    """Converts to a dtype, to a device, or to the dtype of another tensor. A device changes nothing here."""
    target = kwargs.get("other", dtype)
    if isinstance(target, torch.Tensor):
        return self.to(target.dtype)
    names = [each for each in (dtype, *args) if isinstance(each, torch.dtype) or _names_dtype(each)]
    return self.to(as_dtype(names[0])) if names else self.clone()


def _names_dtype(value):
    return isinstance(value, str) and isinstance(getattr(torch, value, None), torch.dtype)


def _same_values(name):
    @api(f"paddle.Tensor.{name}")
    def itself(self):
        return self.clone()


for _name in "contiguous cpu value".split():
    _same_values(_name)


@api("paddle.Tensor.requires_grad_")
def requires_grad_(self, requires_grad=True):
    return self.clone() if requires_grad else self.detach()


@api("paddle.Tensor.detach_")
def detach_(self):
    return self.detach()


# -- how it is kept; every tensor of a case is dense and where its lane computes --


def _answer(name, reply):
    @api(f"paddle.Tensor.{name}")
    def answer(self):
        return reply


for _name in "is_contiguous is_dense".split():
    _answer(_name, True)
for _name in "is_dist is_selected_rows is_sparse is_sparse_coo is_sparse_csr".split():
    _answer(_name, False)


@api("paddle.Tensor.get_strides")
def get_strides(self):
    return list(self.stride())


@api("paddle.Tensor.stride")
def stride(self, dim=None):
    return list(self.stride()) if dim is None else self.stride(dim)


@api("paddle.Tensor.get_device")
def get_device(self):
    return self.get_device()


@api("paddle.Tensor.numpy")
def numpy(self):
    return self.detach().numpy()


# -- other values --


@api("paddle.Tensor.copy_", changes="self", grad=OUTSIDE_GRAPH)
def copy_(self, other, blocking=True):
    return other.to(self.dtype).expand(self.shape)


@api("paddle.Tensor.set_value", changes="self", grad=OUTSIDE_GRAPH)
def set_value(self, value):
    return value.clone()


@api(
    "paddle.Tensor.resize_",
    grad=OUTSIDE_GRAPH,
    known_deviation=avoids(
        "only the shape is compared when the tensor grows; Paddle does not allocate the memory"
    ),
)
def resize_(x, shape, fill_zero=False, name=None):
    """Additional elements are 0 or uninitialised. Paddle's method makes a new tensor."""
    more = prod(shape) - x.numel()
    if more > 0 and not fill_zero:
        return draw_distribution.anything(shape, x.dtype)
    flat = torch.cat([x.flatten(), x.new_zeros(max(0, more))])
    return flat[: prod(shape)].reshape(shape)


@api("paddle.Tensor.random_", grad=RANDOM, undefined=DRAWN)
def random_(x, from_=0, to=None, *, generator=None):
    """Uniform over the integers that the dtype represents, or over the given range."""
    if to is None and from_ == 0:
        # The largest integer up to which the dtype represents all.
        to = round(2 / torch.finfo(x.dtype).eps) if x.is_floating_point() else torch.iinfo(x.dtype).max
    low, high = (0, from_) if to is None else (from_, to)
    return draw_distribution.integer_draw(low, high, x.shape, x.dtype)


@api("paddle.Tensor.repeat")
def repeat(input, *repeats):
    counts = repeats[0] if len(repeats) == 1 and not isinstance(repeats[0], int) else repeats
    counts = as_ints(counts)
    return torch.tile(input, counts)


@api("paddle.Tensor.split_with_sizes")
def split_with_sizes(self, split_sizes, dim=0):
    return torch.split(self, as_ints(split_sizes), as_int(dim))


@api("paddle.Tensor.top_p_sampling", x=positive(), ps=positive(0.3, 0.9), grad=RANDOM, undefined=DRAWN)
def top_p_sampling(
    x, ps, threshold=None, topp_seed=None, seed=-1, k=0, mode="truncated", return_top=False, name=None
):
    """A draw among the most probable classes; only the shape is compared."""
    shape = (x.shape[0], 1)
    drawn = draw_distribution.anything(shape, x.dtype), draw_distribution.anything(shape, torch.int64)
    if not return_top:
        return drawn
    return (
        *drawn,
        draw_distribution.anything((x.shape[0], k), x.dtype),
        draw_distribution.anything((x.shape[0], k), torch.int64),
    )


# -- PyTorch's names with PyTorch's parameters --


same("input, other, *, out=None", *spread("true_divide", *PUBLIC), other=positive())


same("input", *spread("argwhere", *PUBLIC), input=integers(-1, 2))


@api(*spread("view_as_complex", *PUBLIC), undefined=OF_MEMORY)
def view_as_complex(input):
    return torch.complex(input[..., 0], input[..., 1])


@api(*spread("view_as_real", *PUBLIC))
def view_as_real(input):
    return torch.stack([input.real, input.imag], -1)


same(
    "x, tau, y, left=True, transpose=False, name=None",
    *spread("ormqr", "paddle.linalg.{}", "paddle.Tensor.{}"),
    grad=NO_BACKWARD,
    traits={"sums": True, "near_one": 1.0, "without": OTHERS.without},
)


# -- sparse tensors --


def _of_sparse(name, layout, function):
    @api(f"paddle.Tensor.{name}", layouts={"self": layout})
    def answer(self):
        return function(self)


_of_sparse("is_coalesced", "uncoalesced", lambda x: False)
_of_sparse("indices", "coo", lambda x: x.indices)
_of_sparse("values", "coo", lambda x: x.values)
_of_sparse("nnz", "coo", lambda x: len(x.values))
_of_sparse("to_dense", "coo", lambda x: x.dense())
_of_sparse("sparse_dim", "hybrid", lambda x: len(x.indices))
_of_sparse("dense_dim", "hybrid", lambda x: x.values.ndim - 1)
_of_sparse("crows", "csr", lambda x: x.parts()["crows"])
_of_sparse("cols", "csr", lambda x: x.parts()["cols"])

_SOME_ZEROS = integers(-1, 2)


@api("paddle.Tensor.to_sparse_coo", rules={"self": _SOME_ZEROS})
def to_sparse_coo(self, sparse_dim):
    """Rows of the dense axes are stored if they have a non-zero element."""
    rows = self.detach() != 0
    return taken_from(self, rows.flatten(sparse_dim).any(-1) if sparse_dim < self.ndim else rows)


@api("paddle.Tensor.to_sparse_csr", rules={"self": _SOME_ZEROS}, grad=MADE_CSR)
def to_sparse_csr(self):
    return taken_from(self, self != 0, "csr")
