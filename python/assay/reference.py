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
