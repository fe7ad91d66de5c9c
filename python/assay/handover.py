"""Hands results over to the slot: makes a wire.Leaf of each leaf."""

from collections.abc import Callable
from typing import Any

from assay import shared
from assay.draw_distribution import Distribution
from assay.frameworks import Dense, Framework
from assay.results import Numbers
from assay.wire import CODES, UNSUPPORTED, Leaf, Stop, count_of, refuse

LARGEST_ELEMENT = 16  # bytes


class HandOver:
    """Copies results into the arena, or lends them in place. `lent` keeps lent results alive."""

    def __init__(self, framework: Framework, native: Any) -> None:
        self.framework = framework
        self.native = native
        self.lent_from = native.LEND_FROM // LARGEST_ELEMENT  # smaller results are never lent
        self.lent: list[Dense] = []  # results that the slot reads in place

    def leaf(
        self,
        path: str,
        value: Any,
        equality: str,
        terms: Callable[[int], tuple[float, float, float]] | None = None,
    ) -> Leaf:
        """The leaf for a result. `terms` gives the parts of a tensor's error bar, from its number of elements
        (error_bar.bar_of)."""
        equal = shared.EQUALITY_CODES[equality]
        if isinstance(value, self.framework.tensor_type):
            dense = self.framework.dense(value)
            _, pointer, count, dtype, shape, on_device = dense
            code = CODES[dtype]
            lent: bool | bytes = False
            if count >= self.lent_from:
                lent = self.native.lend(pointer, count, code, on_device)
            if lent:
                self.lent.append(dense)
                offset = pointer
            else:
                offset = self.native.hand_over(pointer, count, code, on_device)
            bar = terms(count) if terms is not None else (1.0, 0.0, 0.0)
            return Leaf(path, shared.LEAF_TENSOR, code, tuple(shape), offset, None, equal, (), lent, *bar)
        if isinstance(value, Distribution):
            return self._distribution_leaf(path, value)
        if isinstance(value, Numbers):
            code, count = CODES[value.dtype], count_of(value.shape)
            offset = self.native.hand_over(value.values.buffer_info()[0], count, code)
            return Leaf(path, shared.LEAF_TENSOR, code, value.shape, offset, None, equal)
        if value is None:
            return Leaf(path, shared.LEAF_NONE)
        if isinstance(value, bool):
            return Leaf(path, shared.LEAF_BOOLEAN, value=value)
        if isinstance(value, int):
            return Leaf(path, shared.LEAF_INTEGER, value=str(value))
        if isinstance(value, float):
            return Leaf(path, shared.LEAF_FLOATING, value=value)
        if isinstance(value, complex):
            return Leaf(path, shared.LEAF_COMPLEX, value=value)
        if isinstance(value, str):
            return Leaf(path, shared.LEAF_TEXT, value=value)
        if name := self.framework.dtype_name(value):
            return Leaf(path, shared.LEAF_DTYPE, value=name)
        return self._foreign_leaf(path, value, equal)

    def _foreign_leaf(self, path: str, value: Any, equality: int) -> Leaf:
        """NumPy arrays as tensors, NumPy numbers as numbers; for any other value the name of its type."""
        if hasattr(value, "__array_interface__") and str(value.dtype) in CODES:
            if not value.shape:
                return self.leaf(path, value.item(), "value")
            array = value if value.flags["C_CONTIGUOUS"] else value.copy(order="C")
            code = CODES[str(array.dtype)]
            offset = self.native.hand_over(array.ctypes.data, array.size, code)
            return Leaf(path, shared.LEAF_TENSOR, code, tuple(array.shape), offset, None, equality)
        return Leaf(path, shared.LEAF_OPAQUE, value=type(value).__name__)

    def _distribution_leaf(self, path: str, distribution: Distribution) -> Leaf:
        parameters = []
        for parameter in distribution.parameters:
            if isinstance(parameter, self.framework.tensor_type):
                dense = self.framework.dense(parameter)
                code = CODES[dense.dtype]
                offset = self.native.hand_over(dense.pointer, dense.count, code, dense.on_device)
                parameters.append((code, offset, dense.count))
            else:
                if isinstance(parameter, complex):
                    raise Stop(UNSUPPORTED, f"the distribution {distribution.kind} has no complex parameters")
                parameters.append(float(parameter))
        name = self.framework.dtype_name(distribution.dtype) or refuse(
            f"a distribution of dtype {distribution.dtype}"
        )
        shape = tuple(int(extent) for extent in distribution.shape)
        return Leaf(
            path, shared.LEAF_DISTRIBUTION, CODES[name], shape, 0, distribution.kind, 0, tuple(parameters)
        )
