"""The calls of a graph that GraphNet publishes: model.py, with the shapes of its inputs in weight_meta.py.

The graph's `forward` is read as a tree, statement by statement, and each call of a function that a case may
use is made on tensors without memory (PyTorch's device `meta`), so that the next shapes are known. No text is
evaluated, and nothing else of the file is looked at.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from assay.torch_cases.names import function_of
from assay.torch_cases.texts import Inexpressible, argument_texts
from assay.wire import Stop

_METAS = ("weight_meta.py", "input_meta.py")
# Where the functions of PyTorch's private modules are public, and the beginning of their names there.
_HOMES = {
    "_nn": "torch.nn.functional",
    "_fft": "torch.fft",
    "_linalg": "torch.linalg",
    "_special": "torch.special",
}


def _refused(left: Any, right: Any) -> Any:
    """Numbers of any size."""
    raise Inexpressible("a power of numbers")


_LOOKS = frozenset("size dim stride numel is_contiguous __len__ is_floating_point ndimension".split())
_ATTRIBUTES = frozenset("shape dtype ndim T mT H mH device".split())
_BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv), ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod), ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_), ast.BitOr: ("or", operator.or_), ast.BitXor: ("xor", operator.xor),
    ast.Pow: ("pow", _refused), ast.LShift: ("lshift", _refused), ast.RShift: ("rshift", operator.rshift),
}  # fmt: skip
_COMPARED: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}  # fmt: skip
_CONSTANTS = {"Ellipsis": Ellipsis, "inf": math.inf, "nan": math.nan}
_UNARY = {ast.USub: "neg", ast.Invert: "invert"}


class Call(NamedTuple):
    """One call of a graph: a case, or the reason why it is none."""

    line: int
    text: str
    reason: str = ""


def calls_of(path: Path) -> Iterator[Call]:
    """The calls of a graph, in order. Needs PyTorch."""
    import torch

    tree = ast.parse(path.read_text(encoding="utf-8"))
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef) and found.name == "forward":
            inputs = _inputs(torch, path.parent)
            with torch.device("meta"), torch.no_grad():
                yield from _Graph(torch, found, inputs).calls()


def _inputs(torch: Any, folder: Path) -> dict[str, Any]:
    """The graph's inputs by name: tensors without memory, and numbers."""
    inputs: dict[str, Any] = {}
    for file in (folder / name for name in _METAS):
        for found in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.exists() else ():
            if not isinstance(found, ast.ClassDef):
                continue
            said = {
                target.id: each.value
                for each in found.body
                if isinstance(each, ast.Assign)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
            try:
                name, shape = ast.literal_eval(said["name"]), ast.literal_eval(said["shape"])
                dtype = getattr(torch, str(ast.literal_eval(said["dtype"])).removeprefix("torch."))
                inputs[name] = torch.empty(shape, dtype=dtype, device="meta")
                if not shape and isinstance(data := ast.literal_eval(said["data"]), list) and len(data) == 1:
                    inputs[f"{name} as a number"] = data[0]
            except (KeyError, ValueError, AttributeError, TypeError, RuntimeError):
                continue  # the calls that use it say that it is unknown
    return inputs


class _Graph:
    """The state of a graph that is read: its variables, and the calls so far."""

    def __init__(self, torch: Any, forward: ast.FunctionDef, inputs: dict[str, Any]) -> None:
        self.torch = torch
        self.body = forward.body
        self.variables: dict[str, Any] = {}
        self.found: list[Call] = []
        self.line = forward.lineno
        for each in forward.args.args[1:]:
            number = f"{each.arg} as a number"
            symbolic = each.annotation is not None and ast.unparse(each.annotation).endswith("SymInt")
            if (symbolic and number in inputs) or each.arg in inputs:
                self.variables[each.arg] = inputs[number if symbolic and number in inputs else each.arg]

    def calls(self) -> Iterator[Call]:
        """Every statement in turn. One that cannot be read leaves its variables unknown."""
        for statement in self.body:
            self.line = statement.lineno
            targets: list[ast.expr] = []
            try:
                match statement:
                    case ast.Assign(targets=targets, value=value):
                        result = self.value(value)
                        for target in targets:
                            self.assign(target, result)
                    case ast.AugAssign(target=target, op=op, value=value):
                        targets = [target]
                        left = self.value(ast.Name(target.id) if isinstance(target, ast.Name) else target)
                        self.assign(target, self.binary(op, left, self.value(value), "i"))
                    case ast.Expr(value=value) | ast.AnnAssign(value=ast.expr() as value):
                        self.value(value)
            except (Inexpressible, Stop) as error:
                yield from self._flush()
                yield Call(self.line, ast.unparse(statement)[:160], str(error))
            except Exception as error:  # of the call on tensors without memory
                yield from self._flush()
                yield Call(
                    self.line, ast.unparse(statement)[:160], f"its shapes are unknown: {type(error).__name__}"
                )
            else:
                yield from self._flush()
                continue
            for target in targets:
                if isinstance(target, ast.Name):
                    self.variables.pop(target.id, None)

    def _flush(self) -> list[Call]:
        found, self.found = self.found, []
        return found

    def assign(self, target: ast.expr, value: Any) -> None:
        """Binds names, also of a tuple; an element of a tensor is a call."""
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for part, each in zip(target.elts, value, strict=True):
                self.assign(part, each)
        elif isinstance(target, ast.Subscript):
            self.method(self.value(target.value), "__setitem__", [self.value(target.slice), value], {})
        else:
            raise Inexpressible("a statement that no graph has")

    def value(self, tree: ast.expr) -> Any:
        """The value of an expression."""
        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.variables or name in _CONSTANTS:
                return self.variables[name] if name in self.variables else _CONSTANTS[name]
            case ast.Name():
                raise Inexpressible("it uses a value of an unknown shape")
            case ast.Tuple(elts=parts):
                return tuple(map(self.value, parts))
            case ast.List(elts=parts):
                return list(map(self.value, parts))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if each is None else self.value(each) for each in (lower, upper, step)))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                value = self.value(operand)
                if self.is_tensor(value):
                    return self.method(value, f"__{_UNARY[type(op)]}__", [], {})
                return operator.neg(value) if isinstance(op, ast.USub) else operator.invert(value)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return self.between(_COMPARED[type(op)], self.value(left), self.value(right))
            case ast.Subscript(value=whole, slice=place):
                found, index = self.value(whole), self.value(place)
                return (
                    self.method(found, "__getitem__", [index], {}) if self.is_tensor(found) else found[index]
                )
            case ast.Attribute():
                return self.attribute(tree)
            case ast.Call(func=function, args=args, keywords=keywords):
                named = {each.arg or "": self.value(each.value) for each in keywords}
                return self.call(function, list(map(self.value, args)), named)
        raise Inexpressible(f"an expression that no graph has: {type(tree).__name__}")

    def is_tensor(self, value: Any) -> bool:
        """Whether the value is a tensor."""
        return isinstance(value, self.torch.Tensor)

    def binary(self, op: ast.operator, left: Any, right: Any, form: str = "") -> Any:
        """`left + right`, or `left += right` with the form "i"."""
        return self.between(_BINARY[type(op)], left, right, form)

    def between(
        self, known: tuple[str, Callable[[Any, Any], Any]], left: Any, right: Any, form: str = ""
    ) -> Any:
        """An operator between two values, one of which may be a tensor."""
        name, of_numbers = known
        if self.is_tensor(left):
            return self.method(left, f"__{form}{name}__", [right], {})
        if self.is_tensor(right):
            mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
            return self.method(right, f"__{mirrored.get(name, 'r' + name)}__", [left], {})
        return of_numbers(left, right)

    def attribute(self, tree: ast.Attribute) -> Any:
        """`x.shape` of a tensor, or an object such as `torch.float16`."""
        text = ast.unparse(tree)
        if text.startswith("torch.") and text.count(".") == 1:
            found = getattr(self.torch, tree.attr, None)
            if isinstance(found, self.torch.dtype | self.torch.layout | self.torch.memory_format):
                return found
        else:
            value = self.value(tree.value)
            if self.is_tensor(value) and tree.attr in _ATTRIBUTES:
                return getattr(value, tree.attr)
        raise Inexpressible(f"an expression that no graph has: {text[:40]}")

    def call(self, function: ast.expr, args: list[Any], named: dict[str, Any]) -> Any:
        """A call of one of PyTorch's functions, of a method, or of `slice` and `device`."""
        match function:
            case ast.Name(id="slice"):
                return slice(*args)
            case ast.Name(id="device"):
                return self.torch.device("meta")
            case ast.Attribute(value=of, attr=attr):
                text = ast.unparse(function)
                if text == "torch.device":
                    return self.torch.device("meta")
                if text.startswith("torch."):
                    return self.run(public_name(text), args, named)
                value = self.value(of)
                if self.is_tensor(value):
                    return self.method(value, attr, args, named)
        raise Inexpressible(f"no function that a case may call: {ast.unparse(function)[:40]}")

    def method(self, value: Any, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """A method of a tensor."""
        return self.run(f"torch.Tensor.{name}", [value, *args], named)

    def run(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """Calls the function and keeps the case. A look at a tensor, and a move to a device, is none."""
        try:
            function = function_of(self.torch, name)
        except AttributeError as error:
            raise Inexpressible(f"no function that a case may call: {name}") from error
        looks = name.rpartition(".")[2] in _LOOKS or any(isinstance(each, self.torch.device) for each in args)
        text = "" if looks else f"{name}({', '.join(argument_texts(self.torch, args, named, {}))})"
        if "device" in named:
            named = named | {"device": "meta"}
        result = function(*args, **named)
        if text:
            self.found.append(Call(self.line, text))
        return args[0] if result is None and args else result


def public_name(text: str) -> str:
    """The name that a case has for a function of PyTorch's private modules: `torch._C._nn.linear`."""
    parts = text.split(".")
    if parts[1] != "_C" or len(parts) != 4 or parts[2] not in _HOMES:
        return text
    home = _HOMES[parts[2]]
    return f"{home}.{parts[3].removeprefix(home.rpartition('.')[2] + '_')}"
