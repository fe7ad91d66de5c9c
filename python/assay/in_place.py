"""What a call in place does to its argument, to the tensor that it is a view of, and to its result."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from assay.execution import Execution
from assay.frameworks import Framework
from assay.results import SEQUENCE


@dataclass(frozen=True)
class InPlace:
    """Calls of an API that changes its argument `changes`."""

    framework: Framework
    execution: Execution
    changes: str
    position: int  # of the argument, if it has no name
    viewed: bool  # whether the argument becomes a view of a larger tensor
    copies: bool  # whether the argument has to be a copy, because the case differentiates

    def result(self, function: Callable[..., Any], args: list[Any], kwargs: Any) -> Any:
        """The argument's value after the call. Other parts name what an in-place call must not do."""
        original = kwargs[self.changes] if self.changes in kwargs else args[self.position]
        changed, base = self._writable(original), None
        eager, tensor_type = self.execution.in_place, self.framework.tensor_type
        if self.viewed and eager and isinstance(changed, tensor_type) and self._has_elements(changed):
            base = self.framework.stacked(changed)
            changed = changed if base is None else base[..., 1]
        args[:] = [changed if arg is original else arg for arg in args]
        kwargs.update((name, changed) for name, arg in kwargs.items() if arg is original)
        returned = function(*args, **kwargs)
        if self.execution.functional:
            return returned
        if base is not None:
            return self._seen_through(base, original, changed)
        if not isinstance(returned, tensor_type) or returned is changed:
            return changed
        if not eager:
            return self._of_graph(returned, changed)
        same = self.framework.pointer(returned) == self.framework.pointer(changed)
        return changed if same else {"changed": changed, "returned": returned}

    def _has_elements(self, tensor: Any) -> bool:
        """Whether there are several: a call may enlarge a tensor of one element, which no view can be."""
        return prod(self.framework.shape(tensor)) > 1

    def _of_graph(self, returned: Any, changed: Any) -> Any:
        """What a graph returns, and the argument if the graph left it as it was."""
        if self._alike(returned, changed) and self.framework.equal(returned, changed):
            return returned
        left = self.framework.constant(changed)
        return {"": returned, f"argument {self.changes} left as it was": left}

    def _seen_through(self, base: Any, original: Any, changed: Any) -> Any:
        """The strided view `changed` of the base after the call, and what the base shows if that is something
        else."""
        framework = self.framework
        if not framework.equal(base[..., 0], original):
            return {"changed": changed, "rest of the base": base[..., 0]}
        if self._alike(changed, original) and not framework.equal(base[..., 1], changed):
            return {"changed": changed, "base": base[..., 1]}
        return changed

    def _alike(self, left: Any, right: Any) -> bool:
        """Whether two tensors have the same shape, dtype and strides. Some calls change only these."""
        shape, dtype, strides = self.framework.shape, self.framework.tensor_dtype, self.framework.strides
        return all(form(left) == form(right) for form in (shape, dtype, strides))

    def _writable(self, value: Any) -> Any:
        if isinstance(value, SEQUENCE):
            return [self._writable(part) for part in value]
        if not self.copies or not isinstance(value, self.framework.tensor_type):
            return value
        return self.framework.writable(value)
