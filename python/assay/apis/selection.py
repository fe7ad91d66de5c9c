"""Unique and non-zero elements, masks and membership."""

from assay.arguments import as_dtype
from assay.draw_distribution import anything
from assay.reference import torch
from assay.registry import api, same
from assay.rules import distinct, integers
from assay.shorthand import PUBLIC, TIES, spread

SPARSE = integers(-1, 2)


def repeated(axis=None):
    """Values that occur several times; whole rows repeat if they consist of few values."""
    return integers(0, 16) if axis is None else integers(0, 2)


def first_places(inverse, count):
    """For each of `count` unique values the index of its first occurrence."""
    places = torch.arange(inverse.numel(), device=inverse.device)
    return places.new_full((count,), inverse.numel()).scatter_reduce(0, inverse, places, "amin")


def chosen(values, *extras):
    """Paddle's result: the values alone, or a tuple with the requested extras."""
    asked = [extra for extra, wanted in extras if wanted]
    return (values, *asked) if asked else values


@api(*spread("unique", *PUBLIC), x=repeated, grad=TIES)
def unique(
    x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64", sorted=True,
    name=None,
):  # fmt: skip
    """The index of one of several equal rows is not specified."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse, dtype = inverse.reshape(-1), as_dtype(dtype)
    first = first_places(inverse, counts.numel()).to(dtype)
    return chosen(
        values,
        (first if axis is None else anything(first.shape, dtype), return_index),
        (inverse.to(dtype), return_inverse),
        (counts.to(dtype), return_counts),
    )


@api(*spread("unique_consecutive", *PUBLIC), x=integers(0, 2), grad=TIES)
def unique_consecutive(x, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None):
    values, inverse, counts = torch.unique_consecutive(x, True, True, axis)
    dtype = as_dtype(dtype)
    return chosen(values, (inverse.reshape(-1).to(dtype), return_inverse), (counts.to(dtype), return_counts))


@api(*spread("nonzero", *PUBLIC), x=lambda x: None if x.dtype == "bool" else SPARSE)
def nonzero(x, as_tuple=False, *, out=None):
    return torch.nonzero(x, as_tuple=as_tuple)


same("x, mask, name=None, *, out=None", *spread("masked_select", *PUBLIC))


def members(this, assume_unique=False):
    """Small integers, so that both sets share some; distinct if uniqueness is assumed."""
    return distinct(0, max(this.size, 1)) if assume_unique else integers(0, 50)


def _promised_unique(assume_unique=False):
    return "`assume_unique` requires that no value occurs twice" if assume_unique else ""


@api(
    *spread("isin", *PUBLIC),
    x=members,
    test_x=members,
    undefined=dict.fromkeys(("nan", "infinity", "bulk", "exact"), _promised_unique),
)
def isin(x, test_x, assume_unique=False, invert=False, name=None):
    return torch.isin(x, test_x, invert=invert)
