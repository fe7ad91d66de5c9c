"""What lies below the calls of a program: PyTorch's dispatcher."""

from collections.abc import Callable
from typing import Any


def kernels_of(torch: Any, call: Callable[[], Any], function: Any) -> tuple[Any, list[str]]:
    """The result of a call, and the names of the operators that it dispatches."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(str(func).rpartition(".")[0])
            return func(*args, **(kwargs or {}))

    if isinstance(function, torch._ops.HigherOrderOperator):  # takes no modes that it does not know
        return call(), []
    with Kernels():
        result = call()
    return result, sorted(seen)
