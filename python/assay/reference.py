"""The reference framework, as the API tables see it.

The tables are imported in every lane, because value rules are needed on both sides; only the lane
that hosts PyTorch may import it. Elsewhere `torch` is None and no reference is ever called.
"""

import importlib
import os
from typing import Any

torch: Any = importlib.import_module("torch") if os.environ.get("ASSAY_FRAMEWORK") == "torch" else None
