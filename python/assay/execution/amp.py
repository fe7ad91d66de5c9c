"""The call under automatic mixed precision. Gradients are computed outside of it, as in training."""

from typing import Any

from assay.execution import Function, Plain, ability


class Way(Plain):
    """Wraps the call in the framework's autocast context."""

    def wrap(self, function: Function, api: str) -> Function:
        autocast = ability(self.framework, "autocast", "automatic mixed precision")

        def mixed(*args: Any, **kwargs: Any) -> Any:
            with autocast():
                return function(*args, **kwargs)

        return mixed
