"""Calls of PyTorch's functions as texts of the case language (docs/reference/case-language.md)."""

import ast
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.shared import DTYPES as KNOWN_DTYPES
from assay.spec import TensorSpec
from assay.torch_cases.names import OPERATORS, function_of
from assay.wire import Stop

MOST_DIMENSIONS = 64  # src/case/case_atoms.cc
LEFT_OUT = ("device", "pin_memory", "generator", "_stacklevel")  # arguments that a case does not state


class Inexpressible(Exception):
    """Why no case can be written for a call."""


def name_of(torch: Any, called: Any) -> str:
    """The name under which a case calls a function that PyTorch passes to __torch_function__."""
    name = torch.overrides.resolve_name(called) or ""
    name = re.sub(r"^torch\.(functional|_C\._\w+)\.", "torch.", name)
    names = [re.sub(r"^aten\.", f"{OPERATORS}.aten.", name)]
    if inspect.isbuiltin(called):  # torch.relu_ is not listed, torch._foreach_mul_ is private
        names += [f"{home}.{called.__name__}" for home in ("torch.Tensor", f"{OPERATORS}.aten")]
    for name in names:
        try:
            function_of(torch, name)
        except (AttributeError, Stop):
            continue
        return name
    raise Inexpressible(f"{names[0] or called} is no function that a case may call")


def argument_texts(
    torch: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    seen: dict[int, int],
    check: Callable[[Any], None] | None = None,
) -> list[str]:
    """The arguments of a call. `seen` numbers the tensors of the case; `check` may refuse a tensor."""
    parts = [value_text(torch, value, seen, check) for value in args]
    kept = {key: value for key, value in kwargs.items() if key not in LEFT_OUT}
    return parts + [f"{key}={value_text(torch, value, seen, check)}" for key, value in kept.items()]


def value_text(
    torch: Any, value: Any, seen: dict[int, int], check: Callable[[Any], None] | None = None
) -> str:
    """One argument. Raises Inexpressible."""

    def of_torch(value: Any) -> str | None:
        if isinstance(value, torch.Tensor):
            return _tensor(torch, value, seen, check)
        if isinstance(value, torch.Size):
            return f"list[{', '.join(map(str, value))}]"
        if isinstance(value, torch.dtype):
            return f"Dtype({str(value).removeprefix('torch.')})"
        if isinstance(value, torch.memory_format):
            return json.dumps(str(value).removeprefix("torch."))
        return f"Place({value.type})" if isinstance(value, torch.device) else None

    return text_of(value, of_torch)


def text_of(value: Any, special: Callable[[Any], str | None]) -> str:
    """An argument of any framework. `special` gives the text of the framework's own objects, or None."""
    if (text := special(value)) is not None:
        return text
    if isinstance(value, list | tuple):
        inner = ", ".join(text_of(part, special) for part in value)
        return f"list[{inner}]" if isinstance(value, list) else f"tuple({inner},)" if value else "tuple()"
    if isinstance(value, slice):
        bounds = (text_of(each, special) for each in (value.start, value.stop, value.step))
        return f"slice({', '.join(bounds)})"
    if value is None or value is Ellipsis or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f"math.{value}" if value > 0 else str(value)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, str):
        return json.dumps(value)
    raise Inexpressible(f"an argument of type {type(value).__name__}")


def value_of(tree: ast.expr, other: Callable[[ast.expr], Any]) -> Any:
    """The value of a tree of literals; `other` gives that of nodes of another kind. Nothing is evaluated."""
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex() as value)):
            return -value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return -math.inf
        case ast.List(elts=parts):
            return [value_of(each, other) for each in parts]
        case ast.Tuple(elts=parts):
            return tuple(value_of(each, other) for each in parts)
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.Name(id="Ellipsis"):
            return ...
        case ast.Call(func=ast.Name(id="slice"), args=parts):
            return slice(*(value_of(each, other) for each in parts))
    return other(tree)


def _tensor(torch: Any, value: Any, seen: dict[int, int], check: Callable[[Any], None] | None) -> str:
    if id(value) in seen:
        return f"Tensor#{seen[id(value)]}"
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        raise Inexpressible("a sparse, quantized or nested tensor")
    dtype = str(value.dtype).removeprefix("torch.")
    shape, strides = tuple(value.shape), tuple(value.stride())
    if value.ndim > MOST_DIMENSIONS:
        raise Inexpressible(f"a tensor of more than {MOST_DIMENSIONS} dimensions")
    if dtype not in KNOWN_DTYPES:
        raise Inexpressible(f"a tensor of {dtype}")
    if check is not None:
        check(value)
    shown = ""
    if not value.is_contiguous() and value.numel():
        if TensorSpec(shape, dtype, 0, strides).overlaps():
            raise Inexpressible("a tensor whose elements overlap")
        shown = f", strides=[{', '.join(map(str, strides))}]"
    seen[id(value)] = len(seen) + 1
    return f'Tensor([{", ".join(map(str, shape))}], "{dtype}"{shown})'
