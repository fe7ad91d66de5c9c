"""Kernel windows in Paddle's terms: sizes, strides, paddings and data formats."""

from collections.abc import Sequence

from assay import draw_distribution
from assay.reference import torch

LAYOUTS = ("NCL", "NCHW", "NCDHW")  # the default data format by number of dimensions


def channels_second(x, data_format):
    """x with its channels on the second axis."""
    return x.movedim(-1, 1) if data_format[-1] == "C" and x.ndim > 2 else x


def channels_back(x, data_format):
    return x.movedim(1, -1) if data_format[-1] == "C" and x.ndim > 2 else x


def each(value, count):
    """One int for each dimension, from an int or a list of them."""
    values = list(value) if isinstance(value, Sequence) else [value] * count
    if len(values) != count:
        raise ValueError(f"expected {count} values, got {value}")
    return values


def paddings(padding, sizes, kernel, stride, data_format):
    """(before, after) for each dimension, from any of Paddle's forms of padding."""
    count = len(sizes)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * count
        if padding.upper() != "SAME":
            raise ValueError(f"unknown padding {padding}")
        totals = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(sizes, kernel, stride, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if not isinstance(padding, Sequence):
        return [(padding, padding)] * count
    if isinstance(padding[0], Sequence):
        last = data_format[-1] == "C"
        outer, inner = (padding[0], padding[-1]), padding[1:-1]
        if not last:
            outer, inner = padding[:2], padding[2:]
        if len(inner) != count or any(value for pair in outer for value in pair):
            raise ValueError(f"padding {padding} does not match {count} dimensions")
        return [tuple(pair) for pair in inner]
    if len(padding) == 2 * count:
        return list(zip(padding[::2], padding[1::2], strict=True))
    return [(value, value) for value in each(padding, count)]


def padded(x, pairs, value=0):
    """x with this many more values before and after each of its last dimensions; negative amounts crop."""
    flat = [amount for pair in reversed(pairs) for amount in pair]
    return torch.nn.functional.pad(x, flat, value=value) if any(flat) else x


def of_nothing(x, sizes, data_format, dtype=None):
    """The result for an empty map x, channels second: empty, or uninitialised values."""
    y = channels_back(x.new_empty(*x.shape[:2], *sizes, dtype=dtype), data_format)
    return draw_distribution.anything(y.shape, y.dtype) if y.numel() else y
