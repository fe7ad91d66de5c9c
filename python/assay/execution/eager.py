"""Each operation at once, as the call says it."""

from assay.execution import Plain as Way

__all__ = ["Way"]
