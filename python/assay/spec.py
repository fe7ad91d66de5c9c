"""What a case states of a tensor before the tensor exists."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple


class TensorSpec(NamedTuple):
    """`Tensor([2, 3], "float32")`. `index` counts the tensors of a case in order of appearance."""

    shape: tuple[int, ...]
    dtype: str
    index: int
    strides: tuple[int, ...] = ()  # in elements; () is contiguous
    place: str = ""  # the device that the case names, such as "cpu"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def storage(self) -> int:
        """The elements of memory from the first to the last element."""
        if not self.strides or not self.size:
            return self.size
        return 1 + sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))

    def apart(self) -> tuple[int, ...]:
        """The shape of the elements with distinct addresses: an axis with stride 0 counts once."""
        return tuple(
            1 if step == 0 else extent for extent, step in zip(self.shape, self.strides, strict=True)
        )

    def overlaps(self) -> bool:
        """Whether elements share memory in another way than by stride 0."""
        reach = 0
        for step, extent in sorted(zip(self.strides, self.apart(), strict=True)):
            if extent > 1 and step <= reach:
                return True
            reach += (extent - 1) * step
        return False

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


class PlaceName(str):
    """`Place(gpu:0)`: a device that the case passes as an object."""

    __slots__ = ()


class DtypeName(str):
    """`Dtype(float32)` or `VarType(float32)`: a dtype that the case passes as an object."""

    __slots__ = ()


def layout_of(shape: Sequence[int], number: int) -> tuple[bool, bool]:
    """How the regime `layout` moves the tensor of this number in memory: whether it is transposed, and
    whether it is strided at an offset."""
    turned = sum(extent > 1 for extent in shape) > 1 and number % 3 < 2  # else it is contiguous
    return turned, number % 3 > 0 or not turned


RESULT_PLACES = ("out", "output")  # parameters that receive the result
FLOATING = frozenset({"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})
COMPLEX = frozenset({"complex64", "complex128"})
INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
