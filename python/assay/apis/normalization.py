"""Normalisations, and distances along an axis."""

import math

from assay.apis.loss import functional
from assay.apis.windows import channels_back, channels_second
from assay.arguments import in_float32, widened
from assay.reference import torch
from assay.registry import api
from assay.rules import positive, uniform
from assay.shorthand import FAR_FROM_ZERO


def scaled(x, weight, bias):
    """x times weight plus bias by channel."""
    shape = [x.shape[1]] + [1] * (x.ndim - 2)
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def standard(x, axes, epsilon):
    """x with mean 0 and variance 1 over these axes."""
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + epsilon)


def follow(running, batch, momentum):
    """Moves a running statistic towards the batch's."""
    with torch.no_grad():
        running.copy_(momentum * running + (1 - momentum) * batch.to(running.dtype))


@api(
    "paddle.nn.functional.batch_norm",
    running_var=positive(),
    updates=("running_mean", "running_var"),
    regimes=FAR_FROM_ZERO,
)
def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.9, epsilon=1e-5,
    data_format="NCHW", use_global_stats=None, name=None,
):  # fmt: skip
    """Uses batch statistics in training, or with use_global_stats=False."""
    y = widened(channels_second(x, data_format))
    if running_mean.shape != y.shape[1:2] or running_var.shape != y.shape[1:2]:
        raise ValueError(f"statistics of {len(running_mean)} channels do not match {y.shape[1]} channels")
    if use_global_stats is False or (training and use_global_stats is None):
        axes = [0, *range(2, y.ndim)]
        if training and y.numel():
            variance, mean = torch.var_mean(y.detach(), axes, correction=0)
            follow(running_mean, mean, momentum)
            follow(running_var, variance, momentum)
        y = standard(y, axes, epsilon)
    else:
        y = scaled(y, None, -running_mean.detach())
        y = scaled(y, torch.rsqrt(running_var.detach() + epsilon), None)
    return channels_back(scaled(y, weight, bias), data_format).to(x.dtype)


@api("paddle.nn.functional.instance_norm", regimes=FAR_FROM_ZERO)
def instance_norm(
    x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9,
    eps=1e-5, data_format="NCHW", name=None,
):  # fmt: skip
    """Always uses input statistics, whatever `use_input_stats` is."""
    if data_format.endswith("C"):
        raise NotImplementedError("instance_norm: channels come last")
    y = standard(widened(x).reshape(*x.shape[:2], math.prod(x.shape[2:])), [-1], eps)
    return scaled(y.reshape(x.shape), weight, bias).to(x.dtype)


@api("paddle.nn.functional.group_norm", regimes=FAR_FROM_ZERO)
def group_norm(x, num_groups, epsilon=1e-5, weight=None, bias=None, data_format="NCHW", name=None):
    y = widened(channels_second(x, data_format))
    groups = y.unflatten(1, (num_groups, y.shape[1] // num_groups)).flatten(2)
    y = standard(groups, [-1], epsilon).reshape(y.shape)
    return channels_back(scaled(y, weight, bias), data_format).to(x.dtype)


@api("paddle.nn.functional.layer_norm", regimes=FAR_FROM_ZERO)
def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-5, name=None):
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if shape != list(x.shape[x.ndim - len(shape) :]):
        raise ValueError(f"normalized_shape {shape} does not match a tensor of shape {tuple(x.shape)}")
    y = standard(widened(x), list(range(x.ndim - len(shape), x.ndim)), epsilon)
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape)).to(x.dtype)


@api("paddle.nn.functional.rms_norm")
def rms_norm(input, normalized_shape, weight=None, eps=1e-5, name=None):
    """The result, and the reciprocal root mean square."""
    x = widened(input)
    axes = list(range(x.ndim - len(normalized_shape), x.ndim))
    scale = torch.rsqrt(torch.square(x).mean(axes, keepdim=True) + eps)
    y = x * scale if weight is None else x * scale * weight
    return y.to(input.dtype), scale.detach().reshape(x.shape[: axes[0]])


@api("paddle.nn.functional.local_response_norm")
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, data_format="NCHW", name=None):
    y = functional.local_response_norm(channels_second(x, data_format), size, alpha, beta, k)
    return channels_back(y, data_format)


@api("paddle.nn.functional.normalize")
def normalize(x, p=2, axis=1, epsilon=1e-12, out=None, name=None):
    return in_float32(lambda x: x / norm(x, p, axis, keepdim=True).clamp(min=epsilon), x)


@api("paddle.nn.functional.pairwise_distance", traits={"rows": True, "near_one": 0.0})
def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False, name=None):
    return norm(x - y + epsilon, p, -1, keepdim)


def norm(x, p, axis, keepdim):
    """The p-norm. For p = 0 it is the number of non-zero elements, without a gradient."""
    if x.shape[axis] == 0 and abs(p) == math.inf:
        return x.sum(axis, keepdim)
    return torch.linalg.vector_norm(x, p, axis, keepdim)


# Vectors so short that `eps` bounds the quotient of their lengths.
SHORT = uniform(-1e-5, 1e-5)


@api("paddle.nn.functional.cosine_similarity", regimes={"exact": {"x1": SHORT, "x2": SHORT}})
def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    x1, x2 = torch.broadcast_tensors(x1, x2)
    if not x1.shape[axis]:
        return (x1 * x2).sum(axis)
    squares = torch.square(x1).sum(axis) * torch.square(x2).sum(axis)
    return (x1 * x2).sum(axis) / torch.sqrt(squares.clamp(min=eps * eps))


@api("paddle.nn.functional.temporal_shift")
def temporal_shift(x, seg_num, shift_ratio=0.25, name=None, data_format="NCHW"):
    """The first channels come from the previous step, the next channels from the next step; the rest stay."""
    y = channels_second(x, data_format)
    steps = y.unflatten(0, (y.shape[0] // seg_num, seg_num))
    first, second = int(y.shape[1] * shift_ratio), int(y.shape[1] * 2 * shift_ratio)
    before, after, still = steps.tensor_split([first, second], 2)
    gap = torch.zeros_like
    before = torch.cat([gap(before[:, :1]), before[:, :-1]], 1)
    after = torch.cat([after[:, 1:], gap(after[:, :1])], 1)
    return channels_back(torch.cat([before, after, still], 2).reshape(y.shape), data_format)
