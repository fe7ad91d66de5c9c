"""A tensor as bytes and as numbers, for faults to change."""

import ctypes
import math
import random
import struct
from array import array
from typing import Any

from assay.frameworks import Framework
from assay.results import Numbers
from assay.wire import count_of

# The struct letter of each dtype, or of the parts of a complex dtype. bfloat16 is the upper half of float32.
LETTERS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
    "uint32": "I", "uint64": "Q", "float16": "e", "bfloat16": "H", "float32": "f", "float64": "d",
    "complex64": "f", "complex128": "d",
}  # fmt: skip
REAL = frozenset({"float16", "bfloat16", "float32", "float64"})
PART_OF = {"complex64": "float32", "complex128": "float64"}
TRIES = 32


class Elements:
    """A host copy of a dense tensor. An element of a complex tensor has two parts, one after the other."""

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes, python: bool = False) -> None:
        self.dtype = dtype
        self.python = python  # a Python number
        self.shape = shape
        self.data = bytearray(data)
        self.part = PART_OF.get(dtype, dtype)  # the dtype of a part
        self.size = struct.calcsize(LETTERS[dtype])  # bytes of a part
        self.count = len(data) // self.size

    @property
    def floating(self) -> bool:
        """Whether the parts are floating-point numbers."""
        return self.part in REAL

    def get(self, place: int) -> Any:
        """The part at this index as a number."""
        raw = bytes(self.data[place * self.size : (place + 1) * self.size])
        if self.part == "bfloat16":
            return struct.unpack("<f", b"\0\0" + raw)[0]
        return struct.unpack("<" + LETTERS[self.dtype], raw)[0]

    def put(self, place: int, value: Any) -> None:
        """Sets the part at this index to a number."""
        self.data[place * self.size : (place + 1) * self.size] = packed(self.part, value)

    def code(self, place: int) -> int:
        """The bits of a part."""
        return int.from_bytes(self.data[place * self.size : (place + 1) * self.size], "little")

    def put_code(self, place: int, code: int) -> None:
        """Sets the bits of a part."""
        self.data[place * self.size : (place + 1) * self.size] = code.to_bytes(self.size, "little")

    def copy(self) -> "Elements":
        """An independent copy."""
        return Elements(self.dtype, self.shape, bytes(self.data), self.python)

    def row(self) -> int:
        """The number of parts in a row."""
        return (self.shape[-1] if self.shape else 1) * (2 if self.dtype in PART_OF else 1)

    def a_number(self, draw: random.Random) -> int | None:
        """The index of a random finite number other than 0; None if there is none."""
        drawn = (draw.randrange(self.count) for _ in range(TRIES if self.count else 0))
        for place in (*drawn, *range(self.count)):
            if (value := self.get(place)) and math.isfinite(value):
                return place
        return None

    def handed_over(self) -> Numbers | float:
        """The leaf that the lane returns."""
        return self.get(0) if self.python else Numbers(array("B", self.data), self.dtype, self.shape)


def packed(part: str, value: Any) -> bytes:
    """A number as bytes of its dtype; an overflow becomes infinity."""
    letter = LETTERS[part]
    if part == "bfloat16":
        code = int.from_bytes(packed("float32", value), "little")
        rounded = code if math.isnan(value) else code + 0x7FFF + (code >> 16 & 1)
        return struct.pack("<H", rounded >> 16)
    try:
        return struct.pack("<" + letter, value)
    except OverflowError:
        return struct.pack("<" + letter, math.copysign(math.inf, value))


def elements_of(framework: Framework, tensor: Any) -> Elements | None:
    """A copy of a float or of a dense host tensor. None for other values and dtypes."""
    if isinstance(tensor, float):
        return Elements("float64", (), struct.pack("<d", tensor), python=True)
    if not isinstance(tensor, framework.tensor_type) or framework.sparse_parts(tensor) is not None:
        return None
    dense = framework.dense(tensor)
    if dense.dtype not in LETTERS or dense.on_device:
        return None
    parts = 2 if dense.dtype in PART_OF else 1
    size = count_of(dense.shape) * parts * struct.calcsize(LETTERS[dense.dtype])
    return Elements(dense.dtype, tuple(dense.shape), ctypes.string_at(dense.pointer, size) if size else b"")


def write_back(framework: Framework, tensor: Any, elements: Elements) -> None:
    """Copies elements into a dense tensor's own memory."""
    ctypes.memmove(framework.pointer(tensor), bytes(elements.data), len(elements.data))
