"""Sparse tensors: which indices of a dense tensor they hold, and how they are compared.

The corpora write a sparse argument by shape and dtype, like any other. The tables state its layout (`layouts`
of @api). Its indices depend on the shape only, so both frameworks hold the same. Any value may be stored,
zeros included.

    coo          all axes have indices; sorted and unique
    csr          the last two axes, one after the other for each matrix of a batch
    hybrid       coo, with a dense last axis: images with their channels
    uncoalesced  coo, unsorted, with two values at half of the indices

"""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

LAYOUTS = ("coo", "csr", "hybrid", "uncoalesced")

_PERIOD = 1009  # a prime, so that the pattern does not align with an axis
_SMALL = 1 << 18  # larger tensors store one element in thirty


def is_layout(layout: Any) -> bool:
    """Whether `layouts` of @api may contain this value."""
    if isinstance(layout, tuple):
        return len(layout) == 2 and layout[0] in LAYOUTS and isinstance(layout[1], int)
    return callable(layout) or layout in LAYOUTS


class Places(NamedTuple):
    """The indices of a sparse tensor, and the position of each value in the dense tensor."""

    indices: list[list[int]]  # the coordinates of all values, by sparse axis
    taken: list[int]  # for each value its row in the dense tensor, reshaped to `rows` rows
    rows: int
    row: tuple[int, ...]  # the shape of one row; () except for hybrid tensors


class Sparse(NamedTuple):
    """A sparse tensor as references take and return it. The indices of both layouts are coordinates, [axes,
    values], sorted and unique. Values of a hybrid tensor have more than one axis."""

    indices: Any
    values: Any
    shape: tuple[int, ...]
    layout: str = "coo"

    def over(self, function: Callable[[Any], Any]) -> "Sparse":
        """The tensor with `function` applied to the stored values."""
        return self._replace(values=function(self.values))

    def dense(self) -> Any:
        """The dense tensor; values with equal indices are added."""
        whole = self.values.new_zeros(self.shape)
        return whole.index_put(tuple(self.indices), self.values, accumulate=True)

    def parts(self) -> dict[str, Any]:
        """The compared parts by name; Paddle's have the same names."""
        shape = list(self.shape)
        if self.layout != "csr":
            return {"layout": "coo", "indices": self.indices, "values": self.values, "shape": shape}
        crows, cols = (
            self.indices.new_tensor(each) for each in compressed(self.indices.tolist(), self.shape)
        )
        return {"layout": "csr", "crows": crows, "cols": cols, "values": self.values, "shape": shape}

    def held(self) -> Any:
        """A mask over the sparse axes: True where a value is stored."""
        mask = self.indices.new_zeros(self.shape[: len(self.indices)]).bool()
        mask[tuple(self.indices)] = True
        return mask


def taken_from(dense: Any, held: Any, layout: str = "coo") -> Sparse:
    """The sparse tensor with the values of `dense` where `held` is true."""
    indices = held.nonzero().T
    return Sparse(indices, dense[tuple(indices)], tuple(dense.shape), layout)


def places(shape: tuple[int, ...], index: int, layout: str) -> Places:
    """The indices of the case's tensor number `index`. Each tensor has its own, so that two tensors share
    some."""
    axes = len(shape) - (layout == "hybrid")
    extents = shape[:axes]
    size = prod(extents)
    share, among = (2, 5) if size <= _SMALL else (2, 61)
    held = [i for i in range(_PERIOD) if (i * 40503 + index * 389 + 1) % _PERIOD % among < share]
    taken = [start + i for start in range(0, size, _PERIOD) for i in held if start + i < size]
    if not taken and size:
        taken = [index % size]
    stands = taken
    if layout == "uncoalesced":
        second = taken[::2]
        stands = taken[::-1] + [(place + 1) % size for place in second]
        taken = taken[::-1] + second
    indices, stride = [], 1
    for extent in reversed(extents):
        indices.append([place // stride % extent for place in taken])
        stride *= extent
    return Places(indices[::-1], stands, size, tuple(shape[axes:]))


def compressed(indices: list[list[int]], shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Coordinates of a matrix or a batch as CSR: row starts and columns."""
    batches, rows = (shape[0] if len(shape) == 3 else 1), shape[-2]
    counts = [[0] * rows for _ in range(batches)]
    batch_of = indices[0] if len(shape) == 3 else [0] * len(indices[0])
    for batch, row in zip(batch_of, indices[-2], strict=True):
        counts[batch][row] += 1
    begins: list[int] = []
    for of_batch in counts:
        begins.append(0)
        for count in of_batch:
            begins.append(begins[-1] + count)
    return begins, list(indices[-1])
