"""Cases from operator traces that others publish: `assay corpus import`.

Three forms are read. None is evaluated: Python's parser makes a tree of the text, and only known nodes of the
tree become part of a case.

    Operator: aten.addmm.default                                     tritonbench, PyTorch's own logs (.txt)
    cnt: 3, ((T([8], f16), T([2, 4], f16), T([4, 8], f16, stride=(1, 4))), {})
    op_name = 'aten.add.Tensor', args = '((T([2], f32), 1), {})'     BackendBench (.parquet)
    model.py with weight_meta.py                                     GraphNet (assay.torch_cases.graphs)
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.frameworks.torch_framework import LAYOUTS, MEMORY_FORMATS
from assay.shared import DTYPES as KNOWN_DTYPES
from assay.torch_cases.names import OPERATORS
from assay.torch_cases.texts import Inexpressible, Line, text_of, value_of, write_cases

# Abbreviations of torch.utils._dtype_abbrs.
DTYPES = {
    "bf16": "bfloat16", "f64": "float64", "f32": "float32", "f16": "float16", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "b8": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_OF_MACHINE = ("device", "pin_memory")  # arguments that a case leaves to the lane
_OBJECTS = (*MEMORY_FORMATS, *LAYOUTS)
_NAME = re.compile(r"\w+\.\w+(\.\w+)?", re.ASCII)


class Written(str):
    """The text of a part of a case."""


def lines_of(path: Path) -> Iterator[Line]:
    """The calls of a file, or of all files below a folder."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix == ".parquet" or file.name == "model.py" or _is_trace(file):
                yield from lines_of(file)
    elif path.suffix == ".parquet":
        yield from _of_parquet(path)
    elif path.suffix == ".py":
        yield from _of_graph(path)
    else:
        yield from _of_text(path)


def _is_trace(path: Path) -> bool:
    """Whether a file in a folder is a text of operators: its first words say so."""
    if path.suffix != ".txt" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return next((line.strip() for line in file if line.strip()), "").startswith(("Operator:", "#"))


def _of_text(path: Path) -> Iterator[Line]:
    """Tritonbench's text: operators, each followed by its calls."""
    operator = ""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            line = line.strip()
            if line.startswith("Operator:"):
                operator = line.removeprefix("Operator:").strip()
            elif found := re.match(r"cnt: *\d+, *(.*)", line):
                yield _line(where, operator, found[1])
            elif line and not line.startswith("#"):
                yield Line(where, line, "the line has neither `Operator: NAME` nor `cnt: N, (ARGUMENTS)`")


def _of_graph(path: Path) -> Iterator[Line]:
    """GraphNet's model.py."""
    from assay.torch_cases.graphs import calls_of

    try:
        yield from calls_of(path)
    except (SyntaxError, ValueError, RecursionError) as error:
        yield Line(str(path), str(error), "no graph of Python's")


def _of_parquet(path: Path) -> Iterator[Line]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            f"{error}; a parquet file needs it: {sys.executable} -m pip install pyarrow"
        ) from error
    number = 0
    for batch in parquet.ParquetFile(path).iter_batches(columns=["op_name", "args"]):
        for row in batch.to_pylist():
            number += 1
            yield _line(f"{path}:{number}", str(row["op_name"]), str(row["args"]))


def _line(where: str, operator: str, arguments: str) -> Line:
    try:
        return Line(where, case_of(operator, arguments))
    except Inexpressible as error:
        return Line(where, f"{operator}{arguments}", str(error))


def case_of(operator: str, arguments: str) -> str:
    """The case of an operator such as `aten.add.Tensor` and of its arguments, a tuple and a dict as text.
    Raises Inexpressible."""
    if not _NAME.fullmatch(operator):
        raise Inexpressible("no operator has this name")
    try:
        tree = ast.parse(arguments.strip().strip("'\""), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Inexpressible("the arguments are no tuple and dict of Python's") from error
    match tree:
        case ast.Tuple(elts=[ast.Tuple(elts=args), ast.Dict(keys=keys, values=values)]):
            operator, args = _present(operator, args)
            parts = [_text(each) for each in args]
            for key, value in zip(keys, values, strict=True):
                if not (isinstance(key, ast.Constant) and str(key.value).isidentifier()):
                    raise Inexpressible("a keyword argument has no name")
                if key.value not in _OF_MACHINE:
                    parts.append(f"{key.value}={_text(value)}")
            return f"{OPERATORS}.{operator}({', '.join(parts)})"
    raise Inexpressible("the arguments are no tuple and dict of Python's")


def _present(operator: str, args: list[ast.expr]) -> tuple[str, list[ast.expr]]:
    """The overload that took the place of one of old releases, and its arguments. `SymInt` was the overload
    of each operator whose shapes may be symbols. `vec` of a backward pass took the size or the factors of a
    resize as its forward pass does."""
    if operator == "aten.sum.SymInt":
        return "aten.sum.dim_IntList", args
    if operator.startswith("aten.upsample_") and operator.endswith("_backward.vec"):
        match args:
            case [ast.Call(args=[ast.List(elts=extents), *_]) as grad, size, *between, factors]:
                size = ast.List(extents[2:]) if isinstance(size, ast.Constant) else size
                axes = [ast.Constant(None)] * len(extents[2:])
                return operator.replace(".vec", ".default"), [
                    grad, size, *between, *(factors.elts if isinstance(factors, ast.List) else axes),
                ]  # fmt: skip
    return re.sub(r"\.SymInt$", ".default", operator), args


def _text(tree: ast.expr) -> str:
    """An argument in the case language."""
    return text_of(value_of(tree, _special), _known_text)


def _known_text(value: Any) -> str | None:
    """The text of a part that has one, or of a dtype's abbreviation."""
    is_dtype = isinstance(value, str) and value in DTYPES
    return str(value) if isinstance(value, Written) else f"Dtype({DTYPES[value]})" if is_dtype else None


def _special(tree: ast.expr) -> Any:
    """The value or text of a node that is no literal."""
    match tree:
        case ast.Name(id=name) if name in DTYPES:
            return Written(f"Dtype({DTYPES[name]})")
        case ast.Attribute(value=ast.Name(id="torch" | "th"), attr=name) if name in KNOWN_DTYPES:
            return Written(f"Dtype({name})")
        case ast.Attribute(value=ast.Name(id="torch" | "th"), attr=name) if name in _OBJECTS:
            return Written(f"torch.{name}")
        case ast.Call(func=ast.Name(id="T"), args=args, keywords=keywords):
            return Written(_tensor(args, {each.arg: each.value for each in keywords}))
        case ast.Call(func=ast.Name(id="ST")):
            raise Inexpressible("a sparse tensor")
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" | "nan" as word)]):
            return float(word)
        case ast.Call(func=ast.Attribute(attr="device") | ast.Name(id="device")):
            return Written("Place(gpu:0)" if "cuda" in ast.unparse(tree) else "Place(cpu)")
    raise Inexpressible(f"an argument that no case has: {ast.unparse(tree)[:40]}")


def _tensor(args: list[ast.expr], named: dict[str | None, ast.expr]) -> str:
    """`T([2, 3], f16, stride=(1, 2))`, or with the strides in third place."""
    if len(args) == 3:
        named["stride"] = args.pop()
    match args:
        case [ast.List() | ast.Tuple() as shape, ast.Name(id=word)] if word in DTYPES:
            dtype = DTYPES[word]
        case _:
            raise Inexpressible("a tensor without a shape and a dtype")
    if dtype not in KNOWN_DTYPES:
        raise Inexpressible(f"a tensor of {dtype}")
    options = f", strides=[{_extents(named['stride'])}]" if "stride" in named else ""
    return f'Tensor([{_extents(shape)}], "{dtype}"{options})'


def _extents(tree: ast.expr) -> str:
    parts = [each.value for each in getattr(tree, "elts", ()) if isinstance(each, ast.Constant)]
    if len(parts) != len(getattr(tree, "elts", (None,))) or not all(type(each) is int for each in parts):
        raise Inexpressible("a shape or strides that are no list of whole numbers")
    return ", ".join(map(str, parts))


def main(arguments: list[str] | None = None) -> int:
    """Writes the cases, each once. Ends with 2 if the path cannot be read or has no case."""
    parser = argparse.ArgumentParser(prog="assay corpus import")
    parser.add_argument("path", type=Path)
    path = parser.parse_args(arguments).path
    try:
        count = write_cases(lines_of(path))
    except (OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not count:
        print(f"error: {path} has no operator call that assay reads", file=sys.stderr)
    return 0 if count else 2


if __name__ == "__main__":
    sys.exit(main())
