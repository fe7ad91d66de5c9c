"""The leaves of a result. A long list of numbers is one leaf, an array."""

from array import array
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from assay.draw_distribution import Distribution
from assay.sparse import Sparse

SEQUENCE = (list, tuple)
# A nested list of this many numbers is one leaf, because each leaf takes 200 bytes of the record.
LONG = 256


class Numbers(NamedTuple):
    """The numbers of a nested list, row by row."""

    values: array
    dtype: str
    shape: tuple[int, ...]


TYPECODES = {bool: ("b", "bool"), int: ("q", "int64"), float: ("d", "float64"), complex: ("d", "complex128")}


def flatten(
    value: Any, path: str, tensor_type: type, sparse_parts: Callable[[Any], dict[str, Any] | None]
) -> list[tuple[str, Any]]:
    """The leaves of a result, each with its path. Lists and tuples count as the same; a sparse tensor is its
    parts."""
    if isinstance(value, tensor_type):
        parts = sparse_parts(value)
        if parts is None:
            return [(path, value)]
        return flatten(parts, path, tensor_type, sparse_parts)
    if isinstance(value, Distribution):  # a tuple too
        return [(path, value)]
    if isinstance(value, Sparse):
        return flatten(value.parts(), path, tensor_type, sparse_parts)
    if isinstance(value, SEQUENCE):
        if not value:
            return [(path, "empty sequence")]
        if (numbers := packed(value)) is not None:
            return [(path, numbers)]
        named = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    elif isinstance(value, dict):
        named = [(f"{path}.{key}" if key else path, part) for key, part in value.items()]
    else:
        return [(path, value)]
    return [leaf for name, part in named for leaf in flatten(part, name, tensor_type, sparse_parts)]


def packed(value: Any) -> Numbers | None:
    """A list as Numbers if it is long and regular and its numbers have one type; else None."""
    first = value
    while isinstance(first, SEQUENCE) and first:
        first = first[0]
    if type(first) not in TYPECODES:
        return None
    shape, row = [len(value)], value
    while isinstance(row[0], SEQUENCE):
        length = len(row[0])
        if not all(isinstance(part, SEQUENCE) and len(part) == length for part in row):
            return None
        shape.append(length)
        row = list(chain.from_iterable(row))
    if len(row) < LONG or any(type(number) is not type(first) for number in row):
        return None
    if isinstance(first, complex):
        row = chain.from_iterable((number.real, number.imag) for number in row)
    code, dtype = TYPECODES[type(first)]
    try:
        return Numbers(array(code, row), dtype, tuple(shape))
    except OverflowError:  # larger than int64
        return None
