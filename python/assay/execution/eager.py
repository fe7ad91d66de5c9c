"""The call as it is: each operation runs immediately."""

from assay.execution import Plain as Way

__all__ = ["Way"]
