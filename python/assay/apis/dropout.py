"""Dropout. The references return the distribution of the result."""

from collections.abc import Sequence
from math import prod

from assay import draw_distribution
from assay.reference import torch
from assay.registry import api
from assay.rules import uniform

PROBABILITY = uniform(0.2, 0.8)


@api("paddle.nn.functional.dropout", p=PROBABILITY)
def dropout(x, p=0.5, axis=None, training=True, inplace=False, mode="upscale_in_train", name=None):
    """One draw for each index along `axis`; other axes share it."""
    keep = 1 - float(p)
    if mode not in ("upscale_in_train", "downscale_in_infer") or not 0 <= keep <= 1:
        raise ValueError("dropout: invalid p or mode")
    upscale = mode == "upscale_in_train"
    if not training:
        return x if upscale else x * keep
    if keep in (0, 1):
        return x * keep
    groups = 0 if axis is None else together(x, axis if isinstance(axis, Sequence) else [axis])
    return draw_distribution.kept(x / keep if upscale else x, keep, groups)


def together(x, axes):
    """For each element of x the number of its draw: one draw for each index along the axes."""
    axes = {range(x.ndim)[axis] for axis in axes}
    shape = [extent if axis in axes else 1 for axis, extent in enumerate(x.shape)]
    return torch.arange(prod(shape), device=x.device).reshape(shape).expand(x.shape)


def _channels(x, p, training, data_format):
    """Whole channels are dropped together."""
    if x.ndim != len(data_format):
        raise ValueError(f"dropout: {x.ndim} dimensions do not match {data_format}")
    return dropout(x, p, [0, data_format.index("C")], training)


for _rank, _layout in ((2, "NCHW"), (3, "NCDHW")):
    api(
        f"paddle.nn.functional.dropout{_rank}d",
        p=PROBABILITY,
        signature=f"x, p=0.5, training=True, data_format='{_layout}', name=None",
    )(_channels)


# The limit of selu for large negative numbers, which replaces dropped elements.
_FALLEN = -1.6732632423543772848 * 1.0507009873554804934


@api("paddle.nn.functional.alpha_dropout")
def alpha_dropout(x, p=0.5, training=True, name=None):
    return alpha(x, p, training)


@api("paddle.nn.functional.feature_alpha_dropout")
def feature_alpha_dropout(x, p=0.5, training=True, name=None):
    """Whole channels are dropped."""
    if training and 0 < p < 1 and x.ndim < 2:
        raise ValueError("feature_alpha_dropout: the input has no channels")
    return alpha(x, p, training, together(x, (0, 1)) if x.ndim > 1 else 0)


def alpha(x, p, training, groups=0):
    """Scaled and shifted so that mean 0 and variance 1 are preserved."""
    if not 0 <= p <= 1:
        raise ValueError("alpha_dropout: p must be between 0 and 1")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    scale = ((1 - p) * (1 + p * _FALLEN**2)) ** -0.5
    shift = -scale * _FALLEN * p
    return draw_distribution.either(scale * x + shift, scale * _FALLEN + shift, 1 - p, groups)


@api("paddle.nn.functional.dropout1d")
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Whole channels are dropped."""
    if not 0 <= p <= 1 or input.ndim not in (2, 3):
        raise ValueError(f"p={p} is invalid for {input.ndim} dimensions")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    return draw_distribution.kept(input / (1 - p), 1 - p, together(input, range(input.ndim - 1)))
