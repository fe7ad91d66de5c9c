"""The call for a batch of two equal calls by torch.vmap; the result is that of the first."""

from typing import Any

from assay.execution import Function, Plain, ability
from assay.registry import changes_input
from assay.wire import SKIPPED, Stop


class Way(Plain):
    """Batches the function of each API."""

    def wrap(self, function: Function, api: str) -> Function:
        batched = ability(self.framework, "batched", "vmap")
        if changes_input(api):
            raise Stop(
                SKIPPED, "vmap works on a batch, which an in-place call changes instead of its argument"
            )

        def first(*args: Any, **kwargs: Any) -> Any:
            return batched(function, args, kwargs)

        return first
