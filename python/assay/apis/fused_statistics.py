"""Fused GPU kernels that also return their statistics, and kernels of mixtures of experts."""

from assay.arguments import as_dtype, widened
from assay.reference import torch
from assay.registry import api
from assay.rules import integers
from assay.shorthand import COUNTS


def _rows(x):
    return widened(x).flatten(0, -2)


@api("paddle.incubate.nn.functional.fast_ln")
def fast_ln(x, scale, bias, epsilon=1e-05):
    """The result, and each row's mean and inverse standard deviation."""
    rows = _rows(x)
    mean = rows.mean(1)
    inverse = torch.rsqrt(rows.var(1, unbiased=False) + epsilon)
    y = (rows - mean[:, None]) * inverse[:, None] * widened(scale) + widened(bias)
    return y.reshape(x.shape).to(x.dtype), mean.detach(), inverse.detach()


@api("paddle.incubate.nn.functional.fast_rms_norm", "paddle.incubate.nn.functional.fused_rms_norm_ext")
def fast_rms_norm(x, scale, epsilon=1e-05, name=None):
    """The result, and the inverse root mean square of each row."""
    rows = _rows(x)
    inverse = torch.rsqrt(rows.square().mean(1) + epsilon)
    y = rows * inverse[:, None] * widened(scale)
    return y.reshape(x.shape).to(x.dtype), inverse.detach()


@api(
    "paddle.incubate.nn.functional.int_bincount", x=integers(lambda low: low, lambda high: high), grad=COUNTS
)
def int_bincount(x, low, high, dtype=None, name=None):
    """The number of occurrences of each integer in [low, high)."""
    counts = torch.bincount(x.flatten().long() - low, minlength=high - low)[: high - low]
    return counts.to(as_dtype(dtype) or x.dtype)


@api("paddle.incubate.nn.functional.moe_combine", scatter_index=integers(0, lambda x: x.shape[0]))
def moe_combine(x, combine_weights, scatter_index, name=None):
    """The weighted sum of the outputs of each token's experts. scatter_index has their rows, by expert."""
    rows = widened(x)[scatter_index.long()]  # experts, tokens, width
    return (rows * widened(combine_weights).T.unsqueeze(-1)).sum(0).to(x.dtype)
