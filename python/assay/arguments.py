"""Small conversions that references of many families need: Paddle's loose arguments to torch's."""

from collections.abc import Sequence
from typing import Any

from assay.reference import torch


def as_dtype(dtype: Any) -> Any:
    """torch's dtype for "float32", Dtype(float32) or torch.float32; None stays None.

    "int" and "float" are Paddle's int64 and float64, as Python's own, where torch's have half of
    that; "uint16" is its old name of bfloat16."""
    names = {"int": "int64", "float": "float64", "uint16": "bfloat16"}
    return getattr(torch, names.get(dtype, str(dtype))) if isinstance(dtype, str) else dtype


def as_int(value: Any) -> int:
    """An int from an int or a tensor of one element."""
    return int(value.item()) if isinstance(value, torch.Tensor) else int(value)


def as_ints(values: Any) -> list[int]:
    """Paddle's shape arguments: an int, a list with ints and tensors in it, or a tensor."""
    if isinstance(values, torch.Tensor):
        return [int(value) for value in values.reshape(-1).tolist()]
    if isinstance(values, Sequence):
        return [as_int(value) for value in values]
    return [as_int(values)]


def as_axes(axis: Any) -> tuple[int, ...] | int | None:
    """Paddle's axis: None, an int, a list (empty means all, as None), or a tensor."""
    if axis is None:
        return None
    if isinstance(axis, int) and not isinstance(axis, bool):
        return axis
    axes = tuple(as_ints(axis))
    return axes or None


def in_float32(function: Any, *tensors: Any) -> Any:
    """function(*tensors): half precision is computed in float32 and the result rounded once."""
    if tensors[0].dtype not in (torch.float16, torch.bfloat16):
        return function(*tensors)
    return function(*(tensor.float() for tensor in tensors)).to(tensors[0].dtype)


def widened(x: Any) -> Any:
    """x in float32 where it is half precision, for references of several steps; None stays None."""
    return x.float() if x is not None and x.dtype in (torch.float16, torch.bfloat16) else x
