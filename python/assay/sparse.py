"""Sparse tensors: which places of a dense one they hold, and what two of them are compared by.

The corpora write a sparse argument as they write any other, by shape and dtype, so the tables say of which
form it is (`layouts` of @api). Its places depend on the shape alone, never on the values: every kind of value
stands in a sparse tensor too, zeros included, and both frameworks hold the same places.

    coo          every axis has indices; sorted, no place twice
    csr          the last two axes, one after the other for each matrix of a batch
    hybrid       coo, but for the last axis, which is dense: images with their channels
    uncoalesced  coo, unsorted, and half of the places hold two values
"""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

LAYOUTS = ("coo", "csr", "hybrid", "uncoalesced")

_PERIOD = 1009  # a prime: no axis falls in step with it
_SMALL = 1 << 18  # larger tensors hold one place in thirty


def is_layout(layout: Any) -> bool:
    """Whether `layouts` of @api may say so."""
    if isinstance(layout, tuple):
        return len(layout) == 2 and layout[0] in LAYOUTS and isinstance(layout[1], int)
    return callable(layout) or layout in LAYOUTS


class Places(NamedTuple):
    """Where a sparse tensor of this shape has values, and where in the dense one each of them stands."""

    indices: list[list[int]]  # for each sparse axis the coordinates of all values
    taken: list[int]  # row of the dense tensor, when that is a matrix of `rows` rows
    rows: int
    row: tuple[int, ...]  # the shape of one row: () but for hybrid tensors


class Sparse(NamedTuple):
    """A sparse tensor as references take and give it. The indices of both layouts are coordinates,
    [axes, values], sorted, each place once; values of a hybrid tensor have more than one axis."""

    indices: Any
    values: Any
    shape: tuple[int, ...]
    layout: str = "coo"

    def over(self, function: Callable[[Any], Any]) -> "Sparse":
        """With `function` of the values in their place; zeros that are not held stay what they are."""
        return self._replace(values=function(self.values))

    def dense(self) -> Any:
        """All of it; values of one place are added up."""
        whole = self.values.new_zeros(self.shape)
        return whole.index_put(tuple(self.indices), self.values, accumulate=True)

    def parts(self) -> dict[str, Any]:
        """What is compared of it, by the names of its parts; Paddle's are the same."""
        shape = list(self.shape)
        if self.layout != "csr":
            return {"layout": "coo", "indices": self.indices, "values": self.values, "shape": shape}
        crows, cols = (
            self.indices.new_tensor(each) for each in compressed(self.indices.tolist(), self.shape)
        )
        return {"layout": "csr", "crows": crows, "cols": cols, "values": self.values, "shape": shape}

    def held(self) -> Any:
        """True where it has a value; of the sparse axes only."""
        mask = self.indices.new_zeros(self.shape[: len(self.indices)]).bool()
        mask[tuple(self.indices)] = True
        return mask


def taken_from(dense: Any, held: Any, layout: str = "coo") -> Sparse:
    """The sparse tensor with the values of `dense` where `held` is true."""
    indices = held.nonzero().T
    return Sparse(indices, dense[tuple(indices)], tuple(dense.shape), layout)


def places(shape: tuple[int, ...], index: int, layout: str) -> Places:
    """Of the case's tensor number `index`: each has places of its own, so that two of them share some."""
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
    """Coordinates of a matrix, or of a batch of them, as csr has them: where each row begins, and columns."""
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
