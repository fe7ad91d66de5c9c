"""Sums, means, extremes and moments over axes."""

import math

from assay.arguments import as_axes, as_dtype, in_float32
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import halves, integers, literal, uniform
from assay.shorthand import FACTORS, FAR_FROM_ZERO, PUBLIC, UNCENTRED, cycled, special, spread
from assay.spec import INTEGER

# Axes given as tensors: each axis once, in order (`x` is tensor 0 of its case).
AXES = literal(lambda this, x=None: [(this.index + i) % max(x.ndim if x else 1, 1) for i in range(this.size)])

EVENLY = follows("equal elements share the gradient evenly", "paddle-max-gradient-evenly")

# Some zeros.
SPARSE = integers(-1, 2)


def axes_of(x, axis):
    """The axes as a tuple; all axes for None and for an empty list."""
    axes = as_axes(axis)
    if axes is None:
        return tuple(range(x.ndim))
    return (axes,) if isinstance(axes, int) else axes


def rows_of(x, axis):
    """`x` with these axes merged into the last one, and the shape with keepdim."""
    if x.ndim == 0:
        return x.reshape(1), ()
    axes = [range(x.ndim)[one] for one in axes_of(x, axis)]
    kept = [1 if one in axes else extent for one, extent in enumerate(x.shape)]
    last = x.movedim(axes, tuple(range(-len(axes), 0)))
    return last.reshape(*last.shape[: x.ndim - len(axes)], math.prod(x.shape[one] for one in axes)), kept


def factors(x, dtype=None):
    """Values whose product stays near 1 for any number of elements; small integers for integer dtypes."""
    if x.dtype in INTEGER or dtype is not None and "int" in dtype:
        return integers(1, 3)
    spread = min(0.25, 2 / math.sqrt(max(x.size, 1)))
    return uniform(1 - spread, 1 + spread)


def odd(this):
    """Odd integers, whose product has all of its low bits however often it overflows."""
    return cycled([3, -5, 7, 9, -11, 13, 15]) if this.dtype in INTEGER and this.dtype[0] != "u" else None


def some_zeros(this):
    """Small factors, including zeros."""
    return integers(-2, 3) if this.dtype in INTEGER else halves(-2, 2.5)


PRODUCTS = {"wide": {"x": odd}, "exact": {"x": some_zeros}}


# Numbers whose sum float16 cannot hold, but whose mean it can.
def large_sum(this):
    """… and integers whose sum float64 holds exactly, whatever the order."""
    if this.dtype == "int64":
        return integers(-(2**52) // max(1, this.size), 2**52 // max(1, this.size))
    return uniform(2**14, 2**15) if this.dtype == "float16" else None


LARGE_SUM = {"wide": {"x": large_sum}}


@api(*spread("sum", *PUBLIC), axis=AXES)
def total(x, axis=None, dtype=None, keepdim=False, name=None, *, out=None):
    """bool and int32 are summed as int64; other small integers keep their dtype."""
    dtype = as_dtype(dtype) or (torch.int64 if x.dtype in (torch.bool, torch.int32) else x.dtype)
    return torch.sum(x, axes_of(x, axis), keepdim=keepdim, dtype=dtype)


@api(*spread("nansum", *PUBLIC), axis=AXES)
def nansum(x, axis=None, dtype=None, keepdim=False, name=None):
    return total(torch.nan_to_num(x, 0.0, math.inf, -math.inf), axis, dtype, keepdim)


@api(*spread("mean", *PUBLIC), x=UNCENTRED, axis=AXES, traits={"exact_sums": True}, regimes=LARGE_SUM)
def mean(x, axis=None, keepdim=False, name=None, *, dtype=None, out=None):
    """The mean of integers is an integer, rounded towards zero."""
    dtype = as_dtype(dtype) or x.dtype
    wide = x if x.is_floating_point() or x.is_complex() else x.double()
    if dtype.is_floating_point or dtype.is_complex:
        wide = wide.to(dtype)
    return torch.mean(wide, axes_of(x, axis), keepdim=keepdim).to(dtype)


@api(*spread("nanmean", *PUBLIC), x=UNCENTRED, axis=AXES, traits={"exact_sums": True}, regimes=LARGE_SUM)
def nanmean(x, axis=None, keepdim=False, name=None):
    return torch.nanmean(x, axes_of(x, axis), keepdim=keepdim)


@api(*spread("max", *PUBLIC), axis=AXES, known_deviation=EVENLY)
@api(*spread("amax", *PUBLIC), axis=AXES)
def amax(x, axis=None, keepdim=False, name=None, *, out=None):
    """Equal elements share the gradient evenly."""
    return torch.amax(x, axes_of(x, axis), keepdim)


@api(*spread("min", *PUBLIC), axis=AXES, known_deviation=EVENLY)
@api(*spread("amin", *PUBLIC), axis=AXES)
def amin(x, axis=None, keepdim=False, name=None, *, out=None):
    return torch.amin(x, axes_of(x, axis), keepdim)


@api(*spread("prod", *PUBLIC), x=factors, axis=AXES, regimes=PRODUCTS)
def prod(x, axis=None, keepdim=False, dtype=None, out=None, name=None):
    rows, kept = rows_of(x, axis)
    rows = rows.to(as_dtype(dtype) or x.dtype)
    result = in_float32(lambda rows: torch.prod(rows, -1, dtype=rows.dtype), rows)
    return result.reshape(kept) if keepdim else result


# NaN is not zero. Only it decides.
NAN_IS_TRUE = {"nan": {"x": special(0.0, math.nan, -0.0, 0.0, 0.0, -0.0, 0.0)}}
ALL_BUT_NAN = {"nan": {"x": special(1.0, math.nan, -2.0, 0.5, math.nan)}}


def _truth(name, regimes):
    @api(
        *spread(name, *PUBLIC),
        axis=AXES,
        regimes=regimes,
        signature="x, axis=None, keepdim=False, name=None, *, out=None",
    )
    def call(x, axis, keepdim):
        return getattr(torch, name)(x.bool(), axes_of(x, axis), bool(keepdim))


_truth("all", ALL_BUT_NAN)
_truth("any", NAN_IS_TRUE)


@api(*spread("count_nonzero", *PUBLIC), x=SPARSE, axis=AXES, regimes=NAN_IS_TRUE)
def count_nonzero(x, axis=None, keepdim=False, name=None):
    return torch.sum(x != 0, axes_of(x, axis), keepdim=keepdim)


# For exact inputs PyTorch is correct to the last digit; Paddle sums squared deviations from a rounded mean.
FROM_A_MEAN = {"exact": "the order in which squared deviations are summed is not specified"}


@api(*spread("var", *PUBLIC), x=FACTORS, axis=AXES, undefined=FROM_A_MEAN, regimes=FAR_FROM_ZERO)
def var(x, axis=None, unbiased=None, keepdim=False, name=None, *, correction=1, out=None):
    correction = correction if unbiased is None else int(unbiased)
    return torch.var(x, axes_of(x, axis), correction=correction, keepdim=keepdim)


@api(*spread("std", *PUBLIC), x=FACTORS, axis=AXES, undefined=FROM_A_MEAN, regimes=FAR_FROM_ZERO)
def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    return torch.std(x, axes_of(x, axis), correction=int(unbiased), keepdim=keepdim)


@api(*spread("logsumexp", *PUBLIC), axis=AXES)
def logsumexp(x, axis=None, keepdim=False, name=None, *, out=None):
    return in_float32(lambda x: torch.logsumexp(x, axes_of(x, axis), keepdim), x)


@api(*spread("reduce_as", *PUBLIC))
def reduce_as(x, target, name=None):
    return x.sum_to_size(target.shape)
