"""Dropout: each gives the law that the draw must obey."""

from collections.abc import Sequence
from math import prod

from assay import laws
from assay.registry import api
from assay.rules import uniform

PROBABILITY = uniform(0.2, 0.8)


@api("paddle.nn.functional.dropout", p=PROBABILITY)
def dropout(x, p=0.5, axis=None, training=True, inplace=False, mode="upscale_in_train", name=None):
    """One draw for each index along `axis`; what lies beside it falls together."""
    keep = 1 - float(p)
    if mode not in ("upscale_in_train", "downscale_in_infer") or not 0 <= keep <= 1:
        raise ValueError("dropout: p or mode out of range")
    upscale = mode == "upscale_in_train"
    if not training:
        return x if upscale else x * keep
    if keep in (0, 1):
        return x * keep
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    draws = 0 if axis is None else prod(x.shape[each] for each in axes)
    return laws.kept(x / keep if upscale else x, keep, draws)


@api("paddle.nn.functional.dropout2d", p=PROBABILITY)
def dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None):
    return _channels(x, p, training, data_format)


@api("paddle.nn.functional.dropout3d", p=PROBABILITY)
def dropout3d(x, p=0.5, training=True, data_format="NCDHW", name=None):
    return _channels(x, p, training, data_format)


def _channels(x, p, training, data_format):
    if x.ndim != len(data_format):
        raise ValueError(f"dropout: {x.ndim} dimensions as {data_format}")
    return dropout(x, p, [0, data_format.index("C")], training)


@api("paddle.nn.functional.alpha_dropout", "paddle.nn.functional.feature_alpha_dropout")
def alpha_dropout(x, p=0.5, training=True, name=None):
    """What falls becomes a constant, which no law says yet: only shape and dtype are compared."""
    if training and p == 1:
        return x * 0
    return laws.anything(x.shape, x.dtype) if training and p else x
