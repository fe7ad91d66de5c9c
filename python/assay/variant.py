"""In what an evaluation of a case differs from the plain one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.spec import TensorSpec

Leaves = list[tuple[str, Any]]


class Variant:
    """The plain evaluation: the case as it stands, once. Others override what they do in another way."""

    barred = True  # whether results of a reference have error bars
    checks_inputs = True  # whether inputs that the call must not change are checked
    planted = ""  # the planted fault (assay.mutation), which the reply names

    def run(self, evaluate: Callable[[], None]) -> None:
        """Runs the case."""
        evaluate()

    def dtype(self, name: Any) -> Any:
        """The dtype for one that the case names as an argument; other strings are unchanged."""
        return name

    def tensor(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        """The tensor for a filled tensor of the case, before its strides and its gradient."""
        return tensor

    def built(self, tensor: Any, spec: TensorSpec, parameter: str, path: str) -> None:
        """Sees a tensor of the case or the layer as the call gets it."""

    def arguments(
        self, parameters: Sequence[str], args: list[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        """The arguments of the call or of the layer's constructor."""
        return args, kwargs

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that is called."""
        return function

    def upstream(self, position: int, dtype: str, make: Callable[[str], Any]) -> Any:
        """The upstream gradient of the output at this position; `make` makes one of a dtype."""
        return make(dtype)

    def results(self, leaves: Leaves, gradients: bool) -> Leaves:
        """The results or gradients that the slot gets."""
        return leaves


PLAIN = Variant()
