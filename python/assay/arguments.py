"""Conversions of Paddle's flexible arguments to PyTorch's."""

from collections.abc import Sequence
from typing import Any

from assay.reference import torch


def as_dtype(dtype: Any) -> Any:
    """The torch dtype for "float32", Dtype(float32) or torch.float32; None for None.

    "int" and "float" are Paddle's int64 and float64; torch's have half the size. "uint16" is Paddle's old
    name of bfloat16.
    """
    names = {"int": "int64", "float": "float64", "uint16": "bfloat16"}
    return getattr(torch, names.get(dtype, str(dtype))) if isinstance(dtype, str) else dtype


def as_int(value: Any) -> int:
    """An int from an int or a tensor with one element."""
    return int(value.item()) if isinstance(value, torch.Tensor) else int(value)


def as_ints(values: Any) -> list[int]:
    """A list of ints from Paddle's shape arguments: an int, a list of ints and tensors, or a tensor."""
    if isinstance(values, torch.Tensor):
        return [int(value) for value in values.reshape(-1).tolist()]
    if isinstance(values, Sequence):
        return [as_int(value) for value in values]
    return [as_int(values)]


def as_axes(axis: Any) -> tuple[int, ...] | int | None:
    """Paddle's axis argument: None, an int, a list (an empty one means all axes, as None), or a tensor."""
    if axis is None:
        return None
    if isinstance(axis, int) and not isinstance(axis, bool):
        return axis
    axes = tuple(as_ints(axis))
    return axes or None


def in_float32(function: Any, *tensors: Any) -> Any:
    """function(*tensors), computed in float32 for half precision and rounded once."""
    if tensors[0].dtype not in (torch.float16, torch.bfloat16):
        return function(*tensors)
    return function(*(tensor.float() for tensor in tensors)).to(tensors[0].dtype)


def widened(x: Any) -> Any:
    """x in float32 if it has half precision, for references of several steps; None for None."""
    return x.float() if x is not None and x.dtype in (torch.float16, torch.bfloat16) else x
