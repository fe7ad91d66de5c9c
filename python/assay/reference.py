"""The reference framework for the API tables.

Every lane imports the tables, because both lanes need the value rules. Only the lane that hosts PyTorch has
imported it before. In other lanes `torch` is None, and no reference is called.
"""

import sys
from typing import Any

torch: Any = sys.modules.get("torch")


def common_shape(*shapes: Any) -> Any:
    """The broadcast shape. torch.broadcast_shapes() would import sympy, which takes 0.4 s in every lane."""
    return torch.broadcast_tensors(*(torch.empty(()).expand(tuple(shape)) for shape in shapes))[0].shape


def on_cpu(function: Any, x: Any, *others: Any, **named: Any) -> Any:
    """The function's result on the CPU, moved back to the device of x: for GPU kernels that differ or do not
    exist."""

    def moved(value: Any, place: Any) -> Any:
        return value.to(place) if isinstance(value, torch.Tensor) else value

    found = function(*(moved(value, "cpu") for value in (x, *others)), **named)
    if isinstance(found, tuple):
        return tuple(moved(part, x.device) for part in found)
    return moved(found, x.device)


def on_host(found: dict[str, Any]) -> dict[str, Any]:
    """Arrays as tensors of the reference, because only tensors have an error bar."""
    if torch is None:
        return found
    return {
        key: torch.from_numpy(part) if hasattr(part, "__array__") else part for key, part in found.items()
    }
