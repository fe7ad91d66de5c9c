"""Corpora of sizes, dtypes and layouts that nobody ran: `assay corpus derive`.

Of two captures of one program at two sizes, each number of a call is explained as a formula of the size. Of
one corpus, cases with empty, larger, broadcast or strided tensors, or of another dtype, are made; a case that
PyTorch refuses on tensors without memory is left out.
"""

import argparse
import json
import math
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from assay.scripts.source import Case
from assay.spec import TensorSpec
from assay.torch_cases.names import function_of
from assay.torch_cases.oracle import mapped
from assay.torch_cases.texts import Inexpressible, Line, write_cases
from assay.wire import Stop

_NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+(?:e[-+]?\d+)?)?(?![\w.])")
_TENSOR = re.compile(r'Tensor\(\[([\d, ]*)\], "(\w+)"((?:, (?:is_contiguous=False|strides=\[[\d, ]*\]))*)\)')
MOST_PARTS = 64  # of the size, by which a number grows
MOST_MADE = 1 << 20  # elements of a call that is made to check it
_NO_PARTNER = "the other corpus has no such call whose numbers a formula explains"
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def cases_of(path: Path) -> list[str]:
    """The cases of a corpus, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


# -- formulas of a size --


def explained(at: int, then: int, size: int, before: str, after: str) -> tuple[int, str] | None:
    """The number at a third size, from those at two: constant, a multiple of the size or of its square, or
    such a multiple and an offset, the smaller one, as of a class token. Before it stands how far that is from
    a constant or a multiple. None if no formula explains it."""
    if before == after:
        return int(before == str(at)), before  # the size itself should have changed
    if "." in before + after:
        return None
    old, new = int(before), int(after)
    found = []
    for power in (1, 2):
        slope = Fraction(new - old, then**power - at**power)
        offset = old - slope * at**power
        if slope.denominator <= MOST_PARTS**power and (power == 1 or offset.denominator == 1):
            found.append((abs(offset), int(slope * size**power + offset)))
    if not found:
        return None
    offset, number = min(found)
    return 4 * bool(offset), str(number)


def resized(small: list[str], large: list[str], at: int, then: int, size: int) -> Iterator[tuple[str, str]]:
    """The cases at another size, each with the reason why there is none. Calls are paired by what stays when
    numbers are left out, in their order; the simplest formulas first."""
    waiting = _by_form(large)
    for form, texts in _by_form(small).items():
        left = waiting.pop(form, [])
        for text in texts:
            pairs = []
            for place, other in enumerate(left):
                both = zip(_NUMBER.findall(text), _NUMBER.findall(other), strict=True)
                found = [explained(at, then, size, *numbers) for numbers in both]
                known = [each for each in found if each is not None]
                if len(known) == len(found):
                    pairs.append((sum(cost for cost, _ in known), place, [number for _, number in known]))
            if pairs:
                _, place, numbers = min(pairs)
                del left[place]
                parts = iter(numbers)
                yield _NUMBER.sub(lambda _, parts=parts: next(parts), text), ""
            else:
                yield text, _NO_PARTNER
        yield from ((text, _NO_PARTNER) for text in left)
    yield from ((text, _NO_PARTNER) for texts in waiting.values() for text in texts)


def _by_form(texts: Iterable[str]) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        forms[_NUMBER.sub("N", text)].append(text)
    return forms


# -- variants of one corpus, checked on tensors without memory --


def read(torch: Any, text: str, device: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The function of a case and its arguments, with tensors of this device. Raises Inexpressible."""
    try:
        case = Case(text)
    except RuntimeError as error:
        raise Inexpressible("it does not parse") from error
    if case.constructs:
        raise Inexpressible("layers are not checked")
    made: dict[int, Any] = {}

    def tensor(spec: TensorSpec) -> Any:
        if spec.index not in made:
            strides = spec.strides or torch.empty(spec.shape, device="meta").stride()
            dtype = getattr(torch, spec.dtype)
            made[spec.index] = torch.empty_strided(spec.shape, strides, dtype=dtype, device=device).zero_()
        return made[spec.index]

    ((args, named),) = case.values(torch, tensor, device)
    for key in named.keys() & {"memory_format", "layout"}:
        named[key] = getattr(torch, named[key]) if isinstance(named[key], str) else named[key]
    return case.api, args, named


def shapes_of(torch: Any, text: str, device: str = "meta") -> Any:
    """The shapes of the call's result. Raises what the call raises."""
    name, args, named = read(torch, text, device)
    with torch.device(device), torch.no_grad():
        result = function_of(torch, name)(*args, **named)
    return mapped(result, lambda part: tuple(part.shape) if isinstance(part, torch.Tensor) else None)


def checked(torch: Any, text: str) -> Any:
    """The shapes of the call's result. Kernels refuse more than the rules of shapes: small calls are made."""
    shapes = shapes_of(torch, text)
    elements = sum(math.prod(shape) for shape, _, _ in _tensors(text))
    return shapes_of(torch, text, "cpu") if elements <= MOST_MADE else shapes


Shaped = tuple[list[int], str, str]  # a tensor's shape, dtype and options


def _tensors(text: str) -> list[Shaped]:
    found = _TENSOR.findall(text)
    return [
        ([int(each) for each in shape.split(",") if each.strip()], dtype, kept)
        for shape, dtype, kept in found
    ]


def _with(text: str, tensors: Iterable[Shaped]) -> str:
    parts = (f'Tensor([{", ".join(map(str, shape))}], "{dtype}"{kept})' for shape, dtype, kept in tensors)
    return _TENSOR.sub(lambda _: next(parts), text)


def candidates(text: str, kind: str, value: str) -> Iterator[str]:
    """Texts of a variant of a case, the most likely first."""
    tensors = _tensors(text)
    if kind == "dtype":
        other = _with(text, ((s, value if dtype in _FLOATS else dtype, kept) for s, dtype, kept in tensors))
        yield re.sub(rf"Dtype\(({'|'.join(_FLOATS)})\)", f"Dtype({value})", other)
    elif kind == "layout":
        yield _with(text, ((shape, dtype, kept or _turned(shape)) for shape, dtype, kept in tensors))
    elif kind == "broadcast":
        for place, (shape, dtype, _) in list(enumerate(tensors))[1:]:
            for axis in [axis for axis, extent in enumerate(shape) if extent > 1]:
                narrow = [*shape[:axis], 1, *shape[axis + 1 :]], dtype, ""
                yield _with(text, [*tensors[:place], narrow, *tensors[place + 1 :]])
    else:
        for extent in dict.fromkeys(each for shape, _, _ in tensors[:1] for each in shape if each > 0):
            size = 0 if kind == "zero-size" else extent * int(value)
            contiguous = re.sub(r", strides=\[[^]]*\]", "", text)
            yield re.sub(rf"(?<![\w.#]){extent}(?![\w.])", str(size), contiguous)
            for most in (len(tensors), 1):
                yield _with(
                    text,
                    (
                        ([size if each == extent and n < most else each for each in shape], dtype, "")
                        for n, (shape, dtype, _) in enumerate(tensors)
                    ),
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
    except (Inexpressible, Stop, AttributeError) as error:
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
    try:
        write_cases(Line("", *each) for each in _derived(parser.parse_args(arguments)))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _derived(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The cases that the options ask for. Raises ValueError if they ask for nothing."""
    given = {key: value for key, value in vars(options).items() if key not in ("files", "sizes", "size")}
    kinds = [key.replace("_", "-") for key, value in given.items() if value]
    sizes = [int(each) for each in options.sizes.split(",") if each]
    if options.size or sizes:
        if len(options.files) != 2 or len(set(sizes)) != 2 or min(sizes) < 1 or options.size < 1 or kinds:
            raise ValueError(
                "two captures, --sizes of both and --size: A.txt B.txt --sizes=128,256 --size=4096"
            )
        return resized(*map(cases_of, options.files), *sizes, options.size)
    if len(kinds) != 1:
        raise ValueError("one of --size, --zero-size, --big, --dtype, --layout and --broadcast")
    if options.dtype and options.dtype not in _FLOATS:
        raise ValueError(f"--dtype is one of {', '.join(_FLOATS)}")
    if options.big and not (options.big.isdigit() and int(options.big) > 1):
        raise ValueError("--big takes a factor above 1")
    texts = [text for file in options.files for text in cases_of(file)]
    return varied(texts, kinds[0], options.dtype or options.big)


if __name__ == "__main__":
    sys.exit(main())
