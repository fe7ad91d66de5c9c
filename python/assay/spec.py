"""What a case says of a tensor before it exists."""

from math import prod
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

    def storage(self) -> int:
        """Elements of memory from the first to the last."""
        if not self.strides or not self.size:
            return self.size
        return 1 + sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))

    def apart(self) -> tuple[int, ...]:
        """The shape of the elements that have a place of their own: a stride of 0 repeats one."""
        return tuple(
            1 if step == 0 else extent for extent, step in zip(self.shape, self.strides, strict=True)
        )

    def overlaps(self) -> bool:
        """Whether elements share memory otherwise than by a stride of 0."""
        reach = 0
        for step, extent in sorted(zip(self.strides, self.apart(), strict=True)):
            if extent > 1 and step <= reach:
                return True
            reach += (extent - 1) * step
        return False

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class PlaceName(str):
    """`Place(gpu:0)`: a device that the case passes as an object."""

    __slots__ = ()


class DtypeName(str):
    """`Dtype(float32)` or `VarType(float32)`: the name of a dtype that the case passes as an object."""

    __slots__ = ()


FLOATING = frozenset({"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})
COMPLEX = frozenset({"complex64", "complex128"})
INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
