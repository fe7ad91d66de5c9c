"""The reference framework, as the API tables see it.

The tables are imported in every lane, because value rules are needed on both sides; only the lane
that hosts PyTorch may import it, and has done so before it reads the tables. Elsewhere `torch` is
None and no reference is ever called.
"""

import sys
from typing import Any

torch: Any = sys.modules.get("torch")
