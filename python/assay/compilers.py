"""Tells the slot when a lane compiles or imports: that counts neither against a case's limit nor as its time.

Known are the import of a module by the first call that needs it, PyTorch's Dynamo, and Triton with its tuner.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

_FUNCTIONS = (
    ("_frozen_importlib", "_find_and_load"),  # what `import` calls for a module that is not loaded
    ("triton.compiler", "compile"),
    ("triton.runtime.autotuner", "Autotuner._bench"),
)
_watched: set[str] = set()


def watch(native: Any) -> None:
    """Watches the compilers that this process has imported, and its imports."""
    callbacks = sys.modules.get("torch._dynamo.callback")
    if callbacks is not None and callbacks.__name__ not in _watched:
        _watched.add(callbacks.__name__)
        callbacks.callback_handler.register_start_callback(lambda _: native.compiling(True))
        callbacks.callback_handler.register_end_callback(lambda _: native.compiling(False))
    for module, path in _FUNCTIONS:
        if (found := sys.modules.get(module)) is not None and path not in _watched:
            _watched.add(path)
            *owner, name = path.split(".")
            holder = getattr(found, owner[0]) if owner else found
            setattr(holder, name, _timed(native, getattr(holder, name)))


def _timed(native: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        native.compiling(True)
        try:
            return function(*args, **kwargs)
        finally:
            native.compiling(False)

    return call
