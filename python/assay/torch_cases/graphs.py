"""The calls of a graph that GraphNet publishes: model.py, with the shapes of its inputs in weight_meta.py.

The graph's `forward` is read as a tree, statement by statement. Each function that a case may call is called
on tensors without memory (PyTorch's device `meta`), so that the next shapes are known; a mode of
`__torch_function__` writes the cases. No text is evaluated, and nothing else of the file is looked at.
"""

import ast
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.torch_cases.names import function_of
from assay.torch_cases.texts import Inexpressible, Line, argument_texts, name_of, value_of
from assay.wire import Stop

_METAS = ("weight_meta.py", "input_meta.py")
# Where the functions of PyTorch's private modules are public, and the beginning of their names there.
_HOMES = {
    "_nn": "torch.nn.functional",
    "_fft": "torch.fft",
    "_linalg": "torch.linalg",
    "_special": "torch.special",
}
_LOOKS = frozenset("size dim stride numel is_contiguous __len__ is_floating_point ndimension __get__".split())
_ATTRIBUTES = frozenset("shape dtype ndim T mT H mH device".split())
# The functions of module operator, by the node of the tree.
_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.USub: "neg", ast.Invert: "invert",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_MOST = 2**63  # numbers of a graph are below


def calls_of(path: Path) -> Iterator[Line]:
    """The calls of a graph, in order. Needs PyTorch."""
    import torch

    tree = ast.parse(path.read_text(encoding="utf-8"))
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef) and found.name == "forward":
            graph = _Graph(torch, found, _inputs(torch, path.parent))
            with torch.device("meta"), torch.no_grad():
                yield from graph.calls(path)


def _inputs(torch: Any, folder: Path) -> dict[str, Any]:
    """The graph's inputs by name: tensors without memory, and numbers."""
    inputs: dict[str, Any] = {}
    files = (folder / name for name in _METAS if (folder / name).exists())
    for found in (each for file in files for each in ast.walk(ast.parse(file.read_text(encoding="utf-8")))):
        if not isinstance(found, ast.ClassDef):
            continue
        fields = [each for each in found.body if isinstance(each, ast.Assign)]
        said = {each.targets[0].id: each.value for each in fields if isinstance(each.targets[0], ast.Name)}
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
        self.meta = torch.device("meta")
        self.body = forward.body
        self.variables: dict[str, Any] = {}
        self.texts: list[str] = []  # of the statement
        for each in forward.args.args[1:]:
            symbolic = each.annotation is not None and ast.unparse(each.annotation).endswith("SymInt")
            names = [f"{each.arg} as a number"] * symbolic + [each.arg]
            if name := next((name for name in names if name in inputs), ""):
                self.variables[each.arg] = inputs[name]

    def calls(self, path: Path) -> Iterator[Line]:
        """Every statement in turn. One that cannot be read leaves its variables unknown."""
        graph = self

        class Written(self.torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                graph.write(func, args, kwargs or {})
                return func(*args, **(kwargs or {}))

        for statement in self.body:
            reason = ""
            try:
                with Written():
                    self.run(statement)
            except (Inexpressible, Stop) as error:
                reason = str(error)
            except Exception as error:  # of the call on tensors without memory
                reason = f"its shapes are unknown: {type(error).__name__}"
            where = f"{path}:{statement.lineno}"
            yield from (Line(where, text) for text in self.texts)
            self.texts.clear()
            if reason:
                yield Line(where, ast.unparse(statement)[:160], reason)
                for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
                    self.variables.pop(getattr(target, "id", ""), None)

    def run(self, statement: ast.stmt) -> None:
        """One statement."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self.assign(target, result)
            case ast.AugAssign(target=target, op=op, value=value):
                left = self.value(target)
                self.assign(target, self.between(op, left, self.value(value), "i"))
            case ast.Expr(value=value) | ast.AnnAssign(value=ast.expr() as value):
                self.value(value)

    def write(self, function: Any, args: Any, named: dict[str, Any]) -> None:
        """Keeps the case of a call. A look at a tensor, and a move to a device, is none."""
        moves = any(isinstance(each, self.torch.device) for each in args)
        if getattr(function, "__name__", "") not in _LOOKS and not moves:
            texts = argument_texts(self.torch, args, named, {})
            self.texts.append(f"{name_of(self.torch, function)}({', '.join(texts)})")

    def assign(self, target: ast.expr, value: Any) -> None:
        """Binds names, also of a tuple; an element of a tensor is a call."""
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for part, each in zip(target.elts, value, strict=True):
                self.assign(part, each)
        elif isinstance(target, ast.Subscript):
            operator.setitem(self.value(target.value), self.value(target.slice), value)
        else:
            raise Inexpressible("a statement that no graph has")

    def value(self, tree: ast.expr) -> Any:
        """The value of an expression."""
        return value_of(tree, self.more)

    def more(self, tree: ast.expr) -> Any:
        """The value of an expression that is more than literals."""
        match tree:
            case ast.Name(id=name) if name in self.variables:
                return self.variables[name]
            case ast.Name():
                raise Inexpressible("it uses a value of an unknown shape")
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(each and self.value(each) for each in (lower, upper, step)))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return getattr(operator, _OPERATORS[type(op)])(self.value(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self.between(op, self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                return self.between(op, self.value(left), self.value(right))
            case ast.Subscript(value=whole, slice=place):
                return self.value(whole)[self.value(place)]
            case ast.Attribute():
                return self.attribute(tree)
            case ast.Call(func=function, args=args, keywords=keywords):
                named = {each.arg or "": self.value(each.value) for each in keywords}
                return self.call(function, list(map(self.value, args)), named)
        raise Inexpressible(f"an expression that no graph has: {type(tree).__name__}")

    def between(self, op: ast.AST, left: Any, right: Any, form: str = "") -> Any:
        """`left + right`, or `left += right` with the form "i". Numbers without a tensor are bounded."""
        name = _OPERATORS[type(op)]
        if not isinstance(left, self.torch.Tensor) and not isinstance(right, self.torch.Tensor):
            small = all(isinstance(each, int | float) and abs(each) < _MOST for each in (left, right))
            if not small or name in ("pow", "lshift"):
                raise Inexpressible("an operation without a tensor")
        return getattr(operator, f"{form}{name.rstrip('_')}" if form else name)(left, right)

    def attribute(self, tree: ast.Attribute) -> Any:
        """`x.shape` of a tensor, or an object such as `torch.float16`."""
        text = ast.unparse(tree)
        if text.startswith("torch.") and text.count(".") == 1:
            found = getattr(self.torch, tree.attr, None)
            if isinstance(found, self.torch.dtype | self.torch.layout | self.torch.memory_format):
                return found
        elif tree.attr in _ATTRIBUTES and isinstance(value := self.value(tree.value), self.torch.Tensor):
            return getattr(value, tree.attr)
        raise Inexpressible(f"an expression that no graph has: {text[:40]}")

    def call(self, function: ast.expr, args: list[Any], named: dict[str, Any]) -> Any:
        """A call of one of PyTorch's functions, of a method, or of `slice` and `device`."""
        text = ast.unparse(function)
        if text == "slice":
            return slice(*args)
        if text in ("device", "torch.device"):
            return self.meta
        if "device" in named:
            named["device"] = "meta"
        name = public_name(text)
        if isinstance(function, ast.Attribute) and not text.startswith("torch."):
            args.insert(0, self.value(function.value))
            name = f"torch.Tensor.{function.attr}"
        try:
            return function_of(self.torch, name)(*args, **named)
        except AttributeError as error:
            raise Inexpressible(f"no function that a case may call: {name[:40]}") from error


def public_name(text: str) -> str:
    """The name that a case has for a function of PyTorch's private modules: `torch._C._nn.linear`."""
    parts = text.split(".")
    if parts[1:2] != ["_C"] or len(parts) != 4 or parts[2] not in _HOMES:
        return text
    home = _HOMES[parts[2]]
    return f"{home}.{parts[3].removeprefix(home.rpartition('.')[2] + '_')}"
