"""Calls of PyTorch's functions as texts of the case language (docs/reference/case-language.md)."""

import ast
import inspect
import json
import math
import numbers
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from assay.shared import DTYPES as KNOWN_DTYPES
from assay.spec import TensorSpec
from assay.torch_cases.names import OPERATORS, function_of
from assay.wire import Stop

SAMPLE, MOST_SHOWN = 3, 160  # lines of each reason that are shown, and their length
MOST_DIMENSIONS = 64  # src/case/case_atoms.cc
LEFT_OUT = ("device", "pin_memory", "generator", "_stacklevel")  # arguments that a case does not state


class Inexpressible(Exception):
    """Why no case can be written for a call."""


class Line(NamedTuple):
    """One call that was read, or the reason why it is no case."""

    where: str  # file and line
    text: str  # the case
    reason: str = ""


def write_cases(lines: Iterable[Line]) -> int:
    """Prints each case once, and on standard error the calls that are none, by reason. Returns the number of
    cases."""
    seen: set[str] = set()
    reasons: dict[str, list[Line]] = defaultdict(list)
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007
        if line.reason:
            reasons[line.reason].append(line._replace(text=line.text[:MOST_SHOWN]))
        elif line.text not in seen:
            seen.add(line.text)
            print(line.text)
    left_out = sum(map(len, reasons.values()))
    print(f"{count} calls read, {len(seen)} cases; left out: {left_out} calls", file=sys.stderr)
    for reason, each in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"  {len(each):6}  {reason}", file=sys.stderr)
        for line in each[:SAMPLE]:
            print(f"          {line.where}: {line.text}", file=sys.stderr)
    return len(seen)


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
    kept = {key: each for key, each in kwargs.items() if key not in LEFT_OUT and each is not torch.strided}
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
            return f"Dtype({_known(value)})"
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
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        value = float(value)
        return repr(value) if math.isfinite(value) else f"math.{value}" if value > 0 else str(value)
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


def _known(dtype: Any) -> str:
    """The name of a dtype that the case language has."""
    name = str(dtype).removeprefix("torch.")
    if name not in KNOWN_DTYPES:
        raise Inexpressible(f"a tensor of {name}")
    return name


def _tensor(torch: Any, value: Any, seen: dict[int, int], check: Callable[[Any], None] | None) -> str:
    if id(value) in seen:
        return f"Tensor#{seen[id(value)]}"
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        raise Inexpressible("a sparse, quantized or nested tensor")
    shape, strides = tuple(value.shape), tuple(value.stride())
    if value.ndim > MOST_DIMENSIONS:
        raise Inexpressible(f"a tensor of more than {MOST_DIMENSIONS} dimensions")
    dtype = _known(value.dtype)
    if check is not None:
        check(value)
    shown = ""
    if not value.is_contiguous() and value.numel():
        if TensorSpec(shape, dtype, 0, strides).overlaps():
            raise Inexpressible("a tensor whose elements overlap")
        shown = f", strides=[{', '.join(map(str, strides))}]"
    seen[id(value)] = len(seen) + 1
    return f'Tensor([{", ".join(map(str, shape))}], "{dtype}"{shown})'
