"""Corpora of sizes, dtypes and layouts that nobody ran: `assay corpus derive`.

Of two captures of one program at two sizes, each number of a call is explained as a formula of the size. Of
one corpus, cases with empty, larger, broadcast or strided tensors, or of another dtype, are made; a case that
PyTorch refuses on tensors without memory is left out.
"""

import argparse
import ast
import json
import math
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from assay.frameworks.torch_framework import LAYOUTS, MEMORY_FORMATS
from assay.shared import DTYPES as KNOWN_DTYPES
from assay.torch_cases.names import function_of
from assay.torch_cases.oracle import mapped
from assay.torch_cases.texts import Inexpressible
from assay.wire import Stop

_NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+(?:e[-+]?\d+)?)?(?![\w.])")
_TENSOR = re.compile(r'Tensor\(\[([\d, ]*)\], "(\w+)"((?:, (?:is_contiguous=False|strides=\[[\d, ]*\]))*)\)')
MOST_MADE = 1 << 20  # elements of a call that is made to check it
_NAMES = ("inf", *MEMORY_FORMATS, *LAYOUTS, *KNOWN_DTYPES)
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def cases_of(path: Path) -> list[str]:
    """The cases of a corpus, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


# -- formulas of a size --


def formula(at: int, before: int, then: int, after: int) -> Callable[[int], int] | None:
    """The number at any size, from those at two sizes: constant, proportional, square, linear, or a share."""
    if before == after:
        return lambda size: before
    if before * then == after * at:
        return lambda size: before * size // at
    if before * then * then == after * at * at:
        return lambda size: before * size * size // (at * at)
    slope = Fraction(after - before, then - at)
    if slope.denominator > 64:
        return None
    start = before - slope * at
    return lambda size: int(slope * size + start)


def resized(small: list[str], large: list[str], at: int, then: int, size: int) -> Iterator[tuple[str, str]]:
    """The cases at another size, each with the reason why there is none. Calls are paired by what stays when
    numbers are left out, in their order."""
    waiting: dict[str, list[str]] = defaultdict(list)
    for text in large:
        waiting[_NUMBER.sub("N", text)].append(text)
    for form, texts in _by_form(small).items():
        for text, other in _paired(texts, waiting.pop(form, []), at, then):
            if not other:
                yield text, "the other corpus has no such call"
                continue
            numbers = zip(_NUMBER.findall(text), _NUMBER.findall(other), strict=True)
            found = [_number(at, then, size, *pair) for pair in numbers]
            if None in found:
                yield text, "no formula explains a number"
            else:
                parts = iter(found)
                yield _NUMBER.sub(lambda _, parts=parts: str(next(parts)), text), ""
    for texts in waiting.values():
        for text in texts:
            yield text, "the other corpus has no such call"


def _by_form(texts: Iterable[str]) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        forms[_NUMBER.sub("N", text)].append(text)
    return forms


def _paired(small: list[str], large: list[str], at: int, then: int) -> list[tuple[str, str]]:
    """Calls of one form: equal ones, then in order those whose numbers have formulas, the simplest first."""
    left, pairs = list(large), []
    for text in small:
        costs = [(_cost(text, other, at, then), place) for place, other in enumerate(left)]
        best = min(costs, default=(None, 0), key=lambda each: (each[0] is None, each[0], each[1]))
        pairs.append((text, left.pop(best[1]) if best[0] is not None else ""))
    return pairs


def _cost(text: str, other: str, at: int, then: int) -> int | None:
    """How far the formulas of a pair are from constants and multiples of the size; None if there are none."""
    cost = 0
    for before, after in zip(_NUMBER.findall(text), _NUMBER.findall(other), strict=True):
        if before == after:
            cost += before == str(at)  # the size itself should have changed
        elif "." in before + after or formula(at, int(before), then, int(after)) is None:
            return None
        elif int(before) * then not in (int(after) * at, int(after) * at * at // max(1, then)):
            cost += 4
    return cost


def _number(at: int, then: int, size: int, before: str, after: str) -> str | None:
    if before == after:
        return before
    found = None if "." in before + after else formula(at, int(before), then, int(after))
    return None if found is None else str(found(size))


# -- variants of one corpus, checked on tensors without memory --


def read(torch: Any, text: str, device: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The function of a case and its arguments, with tensors of this device. Raises Inexpressible."""
    plain = re.sub(r"Tensor#(\d+)", r"Again(\1)", re.sub(r"Place\([^)]*\)", "None", text))
    made: list[Any] = []

    def value(tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(value=found):
                return found
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.List(elts=parts) | ast.Subscript(slice=ast.Tuple(elts=parts)):
                return list(map(value, parts))
            case ast.Subscript(slice=part):
                return [value(part)]
            case ast.Call(func=ast.Name(id="tuple"), args=parts):
                return tuple(map(value, parts))
            case ast.Call(func=ast.Name(id="slice"), args=parts):
                return slice(*map(value, parts))
            case ast.Call(func=ast.Name(id="Again"), args=[ast.Constant(value=number)]):
                return made[number - 1]
            case ast.Call(func=ast.Name(id="Dtype"), args=[ast.Name(id=name)]) if name in KNOWN_DTYPES:
                return getattr(torch, name)
            case ast.Call(
                func=ast.Name(id="Tensor"), args=[shape, ast.Constant(value=dtype)], keywords=named
            ):
                strides = [value(each.value) for each in named if each.arg == "strides"]
                extents, kind = value(shape), getattr(torch, dtype)
                strides.append(torch.empty(extents, device="meta").stride())
                made.append(torch.empty_strided(extents, strides[0], dtype=kind, device=device).zero_())
                return made[-1]
            case ast.Name(id="Ellipsis" | "nan" as name):
                return Ellipsis if name == "Ellipsis" else math.nan
            case ast.Attribute(value=ast.Name(id="math" | "torch"), attr=name) if name in _NAMES:
                return math.inf if name == "inf" else getattr(torch, name)
        raise Inexpressible("an argument that is not checked")

    match ast.parse(plain, mode="eval").body:
        case ast.Call(func=ast.Attribute() as function, args=args, keywords=named):
            parts = [value(each) for each in args]
            return ast.unparse(function), parts, {each.arg or "": value(each.value) for each in named}
    raise Inexpressible("layers are not checked")


def shapes_of(torch: Any, text: str, device: str = "meta") -> Any:
    """The shapes of the call's result. Raises what the call raises."""
    name, args, named = read(torch, text, device)
    with torch.device(device), torch.no_grad():
        result = function_of(torch, name)(*args, **named)
    return mapped(result, lambda part: tuple(part.shape) if isinstance(part, torch.Tensor) else None)


def checked(torch: Any, text: str) -> Any:
    """The shapes of the call's result. Kernels refuse more than the rules of shapes: small calls are made."""
    shapes = shapes_of(torch, text)
    extents = (
        [int(each) for each in shape.split(",") if each.strip()] for shape, *_ in _TENSOR.findall(text)
    )
    return shapes_of(torch, text, "cpu") if sum(map(math.prod, extents)) <= MOST_MADE else shapes


def candidates(text: str, kind: str, value: str) -> Iterator[str]:
    """Texts of a variant of a case, the most likely first."""
    tensors = _TENSOR.findall(text)

    def changed(change: Callable[[int, list[int], str, str], tuple[list[int], str, str]]) -> str:
        number = iter(range(len(tensors)))

        def one(found: re.Match[str]) -> str:
            shape = [int(each) for each in found[1].split(",") if each.strip()]
            extents, dtype, options = change(next(number), shape, found[2], found[3])
            return f'Tensor([{", ".join(map(str, extents))}], "{dtype}"{options})'

        return _TENSOR.sub(one, text)

    shapes = [[int(each) for each in shape.split(",") if each.strip()] for shape, _, _ in tensors]
    if kind == "dtype":
        other = changed(lambda _, shape, dtype, kept: (shape, value if dtype in _FLOATS else dtype, kept))
        yield re.sub(rf"Dtype\(({'|'.join(_FLOATS)})\)", f"Dtype({value})", other)
    elif kind == "layout":
        yield changed(lambda _, shape, dtype, kept: (shape, dtype, kept or _turned(shape)))
    elif kind == "broadcast":
        for place, shape in list(enumerate(shapes))[1:]:
            for axis in [axis for axis, extent in enumerate(shape) if extent > 1]:
                yield changed(
                    lambda n, old, dtype, kept, place=place, axis=axis: (
                        ([1 if i == axis else each for i, each in enumerate(old)], dtype, "")
                        if n == place
                        else (old, dtype, kept)
                    )  # fmt: skip
                )
    else:
        for extent in dict.fromkeys(each for shape in shapes[:1] for each in shape if each > 0):
            size = 0 if kind == "zero-size" else extent * int(value)
            everywhere = re.sub(
                rf"(?<![\w.#]){extent}(?![\w.])", str(size), re.sub(r", strides=\[[^]]*\]", "", text)
            )
            yield everywhere
            for most in (len(shapes), 1):
                yield changed(
                    lambda n, old, dtype, _, extent=extent, size=size, most=most: (
                        [size if each == extent and n < most else each for each in old],
                        dtype,
                        "",
                    )  # fmt: skip
                )


def _turned(shape: list[int]) -> str:
    """Strides of the same shape with its last two axes exchanged in memory; none if that changes nothing."""
    if len(shape) < 2 or min(shape[-2:]) < 2 or 0 in shape:
        return ""
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * shape[axis]
    return f", strides=[{', '.join(map(str, strides))}]"


def varied(texts: list[str], kind: str, value: str) -> Iterator[tuple[str, str]]:
    """The variant of each case, or the reason why there is none. A process of its own calls PyTorch, which
    may die of a call with wrong shapes; another one goes on behind that case."""
    import torch

    done = 0
    while done < len(texts):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with os.fdopen(writer, "w") as out:
                for text in texts[done:]:
                    print(json.dumps(_variant(torch, text, kind, value)), file=out, flush=True)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            for line in lines:
                done += 1
                yield tuple(json.loads(line))
        if os.waitpid(child, 0)[1] and done < len(texts):
            yield texts[done], "PyTorch dies of a variant"
            done += 1


def _variant(torch: Any, text: str, kind: str, value: str) -> tuple[str, str]:
    try:
        shapes = shapes_of(torch, text)
    except (Inexpressible, Stop, AttributeError, SyntaxError) as error:
        return text, str(error) if isinstance(error, Inexpressible) else "no function of PyTorch's"
    except Exception:
        return text, "PyTorch refuses the case on tensors without memory"
    for other in candidates(text, kind, value):
        try:
            if other != text and (checked(torch, other) == shapes or kind in ("zero-size", "big")):
                return other, ""
        except Exception:  # the variant is no call
            continue
    return text, f"no variant with {kind} is a call that PyTorch takes"


def main(arguments: list[str] | None = None) -> int:
    """Writes the derived cases, each once, and counts those without."""
    parser = argparse.ArgumentParser(prog="assay corpus derive")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--size", type=int, default=0)
    for kind in ("dtype", "big"):
        parser.add_argument(f"--{kind}", default="")
    for kind in ("zero-size", "layout", "broadcast"):
        parser.add_argument(f"--{kind}", action="store_true")
    options = parser.parse_args(arguments)
    given = vars(options)
    kinds = [
        kind for kind in ("dtype", "big", "zero-size", "layout", "broadcast") if given[kind.replace("-", "_")]
    ]
    try:
        found = _derived(options, kinds)
        written, reasons = set(), Counter[str]()
        for text, reason in found:
            reasons[reason] += 1
            if not reason and text not in written:
                written.add(text)
                print(text)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    left_out = reasons.total() - reasons.pop("", 0)
    print(f"{len(written)} cases; left out: {left_out}", file=sys.stderr)
    for reason, number in reasons.most_common():
        print(f"  {number:6}  {reason}", file=sys.stderr)
    return 0


def _derived(options: argparse.Namespace, kinds: list[str]) -> Iterator[tuple[str, str]]:
    """The cases that the options ask for. Raises ValueError if they ask for nothing."""
    sizes = [int(each) for each in options.sizes.split(",") if each]
    if options.size or sizes:
        if len(options.files) != 2 or len(set(sizes)) != 2 or min(sizes) < 1 or options.size < 1 or kinds:
            raise ValueError(
                "two captures, --sizes of both and --size: A.txt B.txt --sizes=128,256 --size=4096"
            )
        return resized(*map(cases_of, options.files), *sizes, options.size)
    if len(kinds) != 1:
        raise ValueError("one of --size, --zero-size, --big, --dtype, --layout and --broadcast")
    if kinds[0] == "dtype" and options.dtype not in _FLOATS:
        raise ValueError(f"--dtype is one of {', '.join(_FLOATS)}")
    if kinds[0] == "big" and not (options.big.isdigit() and int(options.big) > 1):
        raise ValueError("--big takes a factor above 1")
    texts = [text for file in options.files for text in cases_of(file)]
    return varied(texts, kinds[0], {"dtype": options.dtype, "big": options.big}.get(kinds[0], ""))


if __name__ == "__main__":
    sys.exit(main())
