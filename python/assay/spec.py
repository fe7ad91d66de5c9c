"""What a case says of a tensor before it exists."""

from typing import NamedTuple


class TensorSpec(NamedTuple):
    """`Tensor([2, 3], "float32")`. `index` counts the tensors of a case, in order of appearance."""

    shape: tuple[int, ...]
    dtype: str
    index: int
    strides: tuple[int, ...] = ()  # in elements; () is row by row, without gaps
    place: str = ""  # the device that the case asks for, such as "cpu"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


class PlaceName(str):
    """`Place(gpu:0)`: a device that the case passes as an object."""

    __slots__ = ()


class DtypeName(str):
    """`Dtype(float32)` or `VarType(float32)`: the name of a dtype that the case passes as an object."""

    __slots__ = ()


FLOATING = frozenset({"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})
COMPLEX = frozenset({"complex64", "complex128"})
INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
