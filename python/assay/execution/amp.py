"""The call under automatic mixed precision; gradients are taken outside of it, as training does."""

from typing import Any

from assay.execution import Function, Plain, ability


class Way(Plain):
    def wrap(self, function: Function, api: str) -> Function:
        autocast = ability(self.framework, "autocast", "automatic mixed precision")

        def mixed(*args: Any, **kwargs: Any) -> Any:
            with autocast():
                return function(*args, **kwargs)

        return mixed
