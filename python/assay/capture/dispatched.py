"""What lies below the calls of a program: PyTorch's dispatcher."""

from collections.abc import Callable
from typing import Any

from assay.capture.recorder import Recorder

LOOK_AT = 2  # the step in which coverage is measured, if it is captured


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
    if isinstance(function, torch._ops.OpOverload):
        return call(), [str(function).rpartition(".")[0]]
    with Kernels():
        result = call()
    return result, sorted(seen)


def level(torch: Any, base: type) -> type:
    """The class of a mode that sees each operator of the dispatcher, also of backward passes."""
    from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

    return type(
        "Operators",
        (base, TorchDispatchMode),
        {"is_current": lambda own: _get_current_dispatch_mode() is own},
    )


def look_once(torch: Any, mode: Any, recorder: Recorder) -> Any:
    """In one step, counts the operators that run inside and outside of the calls that the mode sees. Those
    outside come from extensions and scripted functions. Returns the mode that counts."""
    from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if mode.is_current():
                recorder.missed[str(func)] += 1
            else:
                recorder.dispatched += 1
            return func(*args, **(kwargs or {}))

        def is_current(self) -> bool:
            return _get_current_dispatch_mode() is self

    look = Look()
    chosen = recorder.options["steps"]
    at = LOOK_AT if chosen is None else min(chosen)
    choose = recorder.on_step

    def on_step(step: int) -> None:
        if step == at:
            look.__enter__()
        elif step == at + 1 and look.is_current():
            look.__exit__(None, None, None)
        choose(step)

    recorder.on_step = on_step
    if recorder.step == at:
        look.__enter__()
    return look
