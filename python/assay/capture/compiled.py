"""torch.compile under capture: programs stay compiled, and their graphs show which calls they hold."""

import functools
from typing import Any


def pause_inside(torch: Any, mode: Any) -> None:
    """Compiled functions run without the mode, which they would trace."""
    import torch._dynamo.eval_frame as frames

    context = frames._TorchDynamoContext
    plain = context.__call__

    def call(self: Any, function: Any) -> Any:
        made = plain(self, function)
        if not callable(made) or isinstance(made, torch.nn.Module | type):
            return made

        @functools.wraps(made)
        def without_mode(*args: Any, **kwargs: Any) -> Any:
            if not mode.is_current():
                return made(*args, **kwargs)
            mode.__exit__(None, None, None)
            try:
                return made(*args, **kwargs)
            finally:
                mode.__enter__()

        return without_mode

    context.__call__ = call
