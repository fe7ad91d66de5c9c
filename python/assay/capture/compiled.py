"""torch.compile under capture: programs stay compiled, and their graphs show which calls they hold."""

import functools
import operator
import sys
from typing import Any

from assay.torch_cases.texts import Inexpressible, argument_texts, name_of

_followed: list[Any] = []  # PyTorch and the mode


def follow(torch: Any, mode: Any) -> None:
    """Follows torch.compile once the program imports it (hook/sitecustomize.py)."""
    _followed[:] = [torch, mode]


def start(module: Any) -> None:
    """A module of torch._dynamo has been imported."""
    if _followed and hasattr(module, "_TorchDynamoContext"):
        _pause_inside(*_followed, module._TorchDynamoContext)
    elif _followed:
        _show_graphs(*_followed, module.OutputGraph)


def _pause_inside(torch: Any, mode: Any, context: Any) -> None:
    """Compiled functions run without the mode, which they would trace."""
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


def _show_graphs(torch: Any, mode: Any, graphs: Any) -> None:
    """The calls of each graph become cases when the graph is compiled. How often it runs is not known."""
    plain = graphs.call_user_compiler

    def compile_graph(self: Any, module: Any, *inputs: Any) -> Any:
        if mode.active:
            for node in module.graph.nodes:
                if node.op in ("call_function", "call_method"):
                    _record(torch, mode, node)
        return plain(self, module, *inputs)

    graphs.call_user_compiler = compile_graph


def _record(torch: Any, mode: Any, node: Any) -> None:
    """Writes the case of one node."""
    recorder = mode.recorder
    try:
        name = _name(torch, node)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: _tensor(torch, each))
        text = f"{name}({', '.join(argument_texts(torch, args, kwargs, {}))})"
    except Exception as error:  # of a compiler whose graphs are no promise
        reason = str(error) if isinstance(error, Inexpressible) else type(error).__name__
        recorder.left_out[f"inside of torch.compile: {node.target}: {reason}"] += 1
        return
    key = "compiled", text
    case = mode.known.cases.get(key) or mode.known.new(key, text, {"compiled": True}, name)
    recorder.count(case, sys._getframe(1))


def _name(torch: Any, node: Any) -> str:
    if node.op == "call_method":
        return name_of(torch, getattr(torch.Tensor, node.target))
    if getattr(operator, getattr(node.target, "__name__", ""), None) is node.target:
        return f"torch.Tensor.__{node.target.__name__.strip('_')}__"
    return name_of(torch, node.target)


def _tensor(torch: Any, node: Any) -> Any:
    """The node's value without its elements."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return value
    if not all(type(extent) is int for extent in value.shape):
        raise Inexpressible("a symbolic size")
    with torch._C.DisableTorchFunction():
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
