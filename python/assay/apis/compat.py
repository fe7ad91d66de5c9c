"""paddle.compat: PyTorch's functions with PyTorch's parameters."""

from assay.apis.comparison import alike
from assay.arguments import as_int, as_ints
from assay.reference import torch
from assay.regimes import MOVES, SORTS
from assay.registry import api
from assay.rules import distinct, integers
from assay.shorthand import COUNTS, TIES


@api("paddle.compat.equal", input=alike, other=alike, grad=COUNTS)
def equal(input, other):
    common = torch.promote_types(input.dtype, other.dtype)
    return torch.equal(input.to(common), other.to(common))


@api("paddle.compat.slogdet")
def slogdet(x, out=None):
    return tuple(torch.linalg.slogdet(x))


@api("paddle.compat.sort", input=lambda this: distinct(-2, 2), traits=SORTS)
def sort(input, dim=-1, descending=False, stable=False, out=None):
    return tuple(torch.sort(input, dim=dim, descending=descending, stable=stable))


@api("paddle.compat.split", traits=MOVES)
def split(tensor, split_size_or_sections, dim=0):
    sections = split_size_or_sections
    sections = as_ints(sections) if isinstance(sections, list | tuple) else as_int(sections)
    return torch.split(tensor, sections, as_int(dim))


def _extreme(name, both):
    @api(
        f"paddle.compat.{name}",
        input=lambda this: distinct(-2, 2),
        other=lambda this: distinct(-2, 2),
        traits=SORTS | {"moves": False},  # equal elements share the gradient
    )
    def extreme(input, dim=None, keepdim=False, *, out=None, other=None):
        """The extreme of all elements, along an axis with its index, or of two tensors."""
        other = dim if isinstance(dim, torch.Tensor) else other
        if other is not None:
            return getattr(torch, both)(input, other)
        found = getattr(torch, name)
        return found(input) if dim is None else tuple(found(input, dim, keepdim))


_extreme("min", "minimum")
_extreme("max", "maximum")


@api("paddle.compat.unique", input=integers(0, 5), grad=TIES)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return torch.unique(input, sorted, return_inverse, return_counts, dim)


def _median(name):
    @api(f"paddle.compat.{name}", input=lambda this: distinct(-2, 2), traits=SORTS)
    def median(input, dim=None, keepdim=False, *, out=None):
        """The lower of the two middle values."""
        found = getattr(torch, name)
        return found(input) if dim is None else tuple(found(input, dim, keepdim))


_median("median")
_median("nanmedian")


@api("paddle.compat.nn.functional.pad", traits=MOVES | {"moves": False})
def pad(input, pad, mode="constant", value=0.0):
    return torch.nn.functional.pad(input, as_ints(pad), mode, value if mode == "constant" else None)


@api("paddle.compat.nn.functional.linear", traits={"near_one": 0.0})
def linear(input, weight, bias=None):
    """The weight is [out, in], unlike Paddle's own."""
    return torch.nn.functional.linear(input, weight, bias)


@api("paddle.compat.nn.functional.unfold", traits=MOVES | {"moves": False})
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return torch.nn.functional.unfold(input, kernel_size, dilation, padding, stride)


@api("paddle.compat.nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """The layout is batch, head, sequence, width."""
    scores = (query @ key.transpose(-1, -2)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    if attn_mask is not None:
        known = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if known else scores + attn_mask
    return torch.softmax(scores, -1) @ value
