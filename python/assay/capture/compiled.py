"""torch.compile and torch.jit.trace under capture: what they record is the program alone. The graphs of
torch.compile show which calls they hold."""

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from assay.torch_cases.texts import Inexpressible, argument_texts, name_of

_followed: list[Any] = []  # PyTorch and the mode that sees calls


def follow(torch: Any, mode: Any, modes: list[Any]) -> None:
    """Follows torch.compile once the program imports it (hook/sitecustomize.py), and torch.jit.trace."""
    _followed[:] = [torch, mode]
    for name in ("trace", "trace_module", "_get_trace_graph"):
        traced = without(modes, getattr(torch.jit, name))
        for home in (torch.jit, torch.jit._trace):
            setattr(home, name, traced)


def start(module: Any) -> None:
    """A module of torch._dynamo has been imported."""
    if _followed and hasattr(module, "_TorchDynamoContext"):
        _pause_inside(*_followed, module._TorchDynamoContext)
    elif _followed:
        _show_graphs(*_followed, module.OutputGraph)


def without(modes: list[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which runs without these modes of the capture."""

    @functools.wraps(function)
    def without_modes(*args: Any, **kwargs: Any) -> Any:
        own = [each for each in modes if each.is_current()]
        for each in own:
            each.__exit__(None, None, None)
        try:
            return function(*args, **kwargs)
        finally:
            for each in own:
                each.__enter__()

    return without_modes


def _pause_inside(torch: Any, mode: Any, context: Any) -> None:
    """Compiled functions run without the mode, which they would trace."""
    plain = context.__call__

    def call(self: Any, function: Any) -> Any:
        made = plain(self, function)
        if not callable(made) or isinstance(made, torch.nn.Module | type):
            return made
        return without([mode], made)

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
    """Writes the case of one node. What takes one of several results computes nothing."""
    recorder = mode.recorder
    try:
        name = _name(torch, node)
        if node.target is operator.getitem and isinstance(_tensor(torch, node.args[0]), tuple | list):
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: _tensor(torch, each))
        text = f"{name}({', '.join(argument_texts(torch, args, kwargs, {}))})"
    except Exception as error:  # of a compiler whose graphs are no promise
        reason = str(error) if isinstance(error, Inexpressible) else type(error).__name__
        target = getattr(node.target, "__name__", node.target)
        recorder.left_out[f"inside of torch.compile: {target}: {reason}"] += 1
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
    """The node's value without its elements, of the size with which the graph is compiled."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return _size(value)
    shape, strides = (tuple(map(_size, each)) for each in (value.shape, value.stride()))
    with torch._C.DisableTorchFunction():
        return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")


def _size(value: Any) -> Any:
    """A symbolic number as the number that it is now; any other value as it is."""
    hint = getattr(getattr(value, "node", None), "hint", value)
    if hint is None is not value:
        raise Inexpressible("a symbolic size")
    return hint
