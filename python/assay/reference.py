"""The reference framework, as the API tables see it.

The tables are imported in every lane, because value rules are needed on both sides; only the lane
that hosts PyTorch may import it, and has done so before it reads the tables. Elsewhere `torch` is
None and no reference is ever called.
"""

import sys
from typing import Any

torch: Any = sys.modules.get("torch")


def common_shape(*shapes: Any) -> Any:
    """What they broadcast to; torch.broadcast_shapes() imports sympy for that, 0.4 s in every lane."""
    return torch.broadcast_tensors(*(torch.empty(()).expand(tuple(shape)) for shape in shapes))[0].shape


def on_cpu(function: Any, x: Any, *others: Any, **named: Any) -> Any:
    """What PyTorch makes of it on the CPU, where x is: for what its GPU kernels do otherwise, or cannot."""

    def moved(value: Any, place: Any) -> Any:
        return value.to(place) if isinstance(value, torch.Tensor) else value

    found = function(*(moved(value, "cpu") for value in (x, *others)), **named)
    if isinstance(found, tuple):
        return tuple(moved(part, x.device) for part in found)
    return moved(found, x.device)
