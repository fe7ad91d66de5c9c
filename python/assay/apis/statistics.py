"""Medians, quantiles, histograms and covariances."""

import math

from assay.apis.reduction import rows_of
from assay.apis.sorting import ALL
from assay.arguments import as_int, in_float32
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import increasing, integers, positive, uniform
from assay.shorthand import COUNTS, FACTORS, LINALG, NO_BACKWARD, PUBLIC, spread


def middle(x, axis, keepdim, mode, without_nan):
    """The median: the mean of the two middle values, or (`min`) the lower one and its index. It is the first
    NaN if there is one, unless `without_nan`."""
    rows, kept = rows_of(x, axis)
    shape = kept if keepdim else rows.shape[:-1]
    if rows.shape[-1] == 0:
        return rows.mean(-1).reshape(shape), torch.zeros(shape, dtype=torch.int64, device=x.device)
    ordered, places = torch.sort(rows, dim=-1, stable=True)  # NaN comes last
    count = torch.sum(~torch.isnan(rows), -1, keepdim=True)
    lower = (count - 1).clamp(min=0) // 2
    value = ordered.gather(-1, lower)
    if mode == "avg":
        upper = ordered.gather(-1, count // 2 % rows.shape[-1])
        if value.is_floating_point():
            value = (value + upper) / 2
        else:
            value = torch.div(value.long() + upper.long(), 2, rounding_mode="trunc")
    place = places.gather(-1, lower)
    if not without_nan:
        missing = torch.isnan(rows)
        first, some = missing.byte().argmax(-1, keepdim=True), missing.any(-1, keepdim=True)
        value = value.masked_fill(some, torch.nan) if value.is_floating_point() else value
        place = torch.where(some, first, place)
    return value.reshape(shape), place.reshape(shape)


def _placed(mode="avg"):
    return (
        "the documentation does not say which of several equal elements the index names"
        if mode == "min"
        else ""
    )


PLACES = dict.fromkeys(("infinity", "bulk"), _placed)


@api(*spread("median", *PUBLIC), x=ALL, undefined=PLACES)
def median(x, axis=None, keepdim=False, mode="avg", name=None, *, out=None):
    """The average is float32, or float64 for float64."""
    if mode == "avg":
        return middle(x if x.dtype == torch.float64 else x.float(), axis, keepdim, mode, False)[0]
    values, places = middle(x, axis, keepdim, mode, False)
    return values if axis is None else (values, places)


@api(
    *spread("nanmedian", *PUBLIC),
    x=ALL,
    undefined=PLACES,
    known_deviation=follows(
        "the average of integers is truncated to an integer", "paddle-nanmedian-whole-numbers"
    ),
)
def nanmedian(x, axis=None, keepdim=False, mode="avg", name=None):
    values, places = middle(x, axis, keepdim, mode, True)
    return (values.to(x.dtype), places) if mode == "min" and isinstance(axis, int) else values.to(x.dtype)


BETWEEN = {
    "linear": lambda below, above, weight: torch.lerp(below, above, weight),
    "midpoint": lambda below, above, weight: (below + above) / 2,
    "lower": lambda below, above, weight: below,
    "higher": lambda below, above, weight: above,
}


def quantiles(x, q, axis, keepdim, interpolation, without_nan):
    """NaN if a row has one, unless `without_nan`. A list with one q is like the q itself."""
    rows, kept = rows_of(x, axis)
    ordered = torch.sort(rows, dim=-1).values  # NaN comes last
    count = torch.sum(~torch.isnan(rows), -1, keepdim=True)
    q = torch.as_tensor(q, dtype=x.dtype, device=x.device).detach().reshape(-1)
    # For a row of NaN the first position is used.
    position = q.reshape(-1, *[1] * rows.ndim) * (count - 1).clamp(min=0)
    if interpolation == "nearest":
        position, interpolation = position.round(), "lower"
    ordered = ordered.expand(len(q), *rows.shape)
    below, above = (ordered.gather(-1, place.long()) for place in (position.floor(), position.ceil()))
    result = BETWEEN[interpolation](below, above, position - position.floor())
    if not without_nan:
        result = torch.where(torch.isnan(rows).any(-1, keepdim=True), torch.nan, result)
    result = result.reshape(len(q), *(kept if keepdim else rows.shape[:-1]))
    return result[0] if len(q) == 1 else result


BETWEEN_INFINITIES = {"infinity": "the result between an infinity and a number depends on the formula"}
# A NaN in q becomes an index: CPUs report an error, GPUs an illegal access.
UNDEFINED = {"undefined": BETWEEN_INFINITIES, "regimes": {"nan": {"q": uniform(0, 1)}}}


@api(*spread("quantile", *PUBLIC), x=ALL, q=uniform(0, 1), **UNDEFINED)
def quantile(x, q, axis=None, keepdim=False, interpolation="linear", name=None, *, out=None):
    return quantiles(x, q, axis, keepdim, interpolation, False)


@api(*spread("nanquantile", *PUBLIC), x=ALL, q=uniform(0, 1), **UNDEFINED)
def nanquantile(x, q, axis=None, keepdim=False, interpolation="linear"):
    return quantiles(x, q, axis, keepdim, interpolation, True)


def limits(x, low, high, margin):
    """The range of a histogram: by default that of the values, widened if it is empty."""
    if low == high == 0 and x.numel():
        low, high = x.min().item(), x.max().item()
    return (low - margin, high + margin) if low == high else (low, high)


# Integers, so that no value is within a rounding error of an edge.
WHOLE = integers(-8, 9)


@api(*spread("histogram", *PUBLIC), input=WHOLE, grad=COUNTS)
def histogram(input, bins=100, min=0.0, max=0.0, weight=None, density=False, name=None):
    """Computed here in float64, because PyTorch has no weights on a GPU."""
    low, high = limits(input, min, max, 1)
    inside = (input >= low) & (input <= high)
    place = ((input[inside].double() - low) * bins / (high - low)).long().clamp(max=bins - 1)
    counts = torch.bincount(place, None if weight is None else weight[inside].double(), bins)
    if density:
        counts = counts * bins / (counts.sum() * (high - low))
    return counts if weight is None and not density else counts.float()


@api(*spread("histogram_bin_edges", *PUBLIC), input=WHOLE, grad=NO_BACKWARD)
def histogram_bin_edges(input, bins=100, min=0.0, max=0.0, name=None):
    return torch.linspace(*limits(input, min, max, 0.5), bins + 1, device=input.device)


def over_ranges(ranges=None):
    """Over the ranges and slightly beyond."""
    return uniform(min(ranges) - 0.5, max(ranges[1::2]) + 0.5) if ranges else uniform(0, 10)


ROWS = 1 << 24  # at a time: several integers for each of a billion rows have no place on a GPU


@api(*spread("histogramdd", *PUBLIC), x=over_ranges, bins=increasing(0, 10), weights=positive(), grad=COUNTS)
def histogramdd(x, bins=10, ranges=None, density=False, weights=None, name=None):
    """PyTorch has it on CPUs only. There it makes the edges; the rows are counted where they are."""
    rows = x.detach().flatten(0, -2)
    if not isinstance(edges := bins, tuple):
        extremes = torch.stack([rows.amin(0), rows.amax(0)]) if rows.numel() else rows
        edges = [
            edge.to(x.device) for edge in torch.histogramdd(extremes.cpu(), bins, range=ranges).bin_edges
        ]
    sizes = [edge.numel() - 1 for edge in edges]
    counts = torch.zeros(math.prod(sizes), dtype=torch.float64, device=x.device)
    weights = None if weights is None else weights.detach().flatten().double()
    for start in range(0, len(rows), ROWS):
        place, inside = 0, True
        for column, edge, size in zip(rows[start : start + ROWS].unbind(1), edges, sizes, strict=True):
            inside = (column >= edge[0]) & (column <= edge[-1]) & inside
            within = torch.bucketize(column.contiguous(), edge, right=True) - 1
            place = place * size + within.clamp(max=size - 1)
        weight = None if weights is None else weights[start : start + ROWS][inside]
        counts += torch.bincount(place[inside], weight, len(counts))
    counts = counts.view(sizes)
    if density:
        counts = counts / counts.sum()
        for dim, edge in enumerate(edges):
            counts = counts / edge.diff().view([-1] + [1] * (len(sizes) - 1 - dim))
    return counts.to(x.dtype), list(edges)


@api(*spread("bincount", *PUBLIC), x=integers(0, 20), minlength=integers(0, 40), grad=COUNTS)
def bincount(x, weights=None, minlength=0, name=None):
    return torch.bincount(x, weights, as_int(minlength))


FROM_A_MEAN = {"infinity": "the difference between an infinity and a mean depends on the formula"}


@api(
    *spread("cov", *LINALG),
    x=FACTORS,
    fweights=integers(1, 10),
    aweights=integers(1, 10),
    undefined=FROM_A_MEAN,
    traits={"without": {}},
)
def cov(x, rowvar=True, ddof=True, fweights=None, aweights=None, name=None):
    def covariance(rows):
        weights = None if aweights is None else aweights.to(rows.dtype)
        return torch.cov(rows, correction=int(ddof), fweights=fweights, aweights=weights)

    return in_float32(covariance, x if rowvar or x.ndim < 2 else x.T)


@api(*spread("corrcoef", *LINALG), undefined=FROM_A_MEAN)
def corrcoef(x, rowvar=True, name=None):
    return in_float32(torch.corrcoef, x if rowvar or x.ndim < 2 else x.T)
