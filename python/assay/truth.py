"""The truth of a case: the reference function in float64 on the same inputs, and on perturbed inputs.

The inputs are filled in their own dtype and then widened, which is exact. With `move` k > 0, every
floating-point input changes by up to half a unit in its last place. No result in that dtype can be more
precise than the change that this causes (src/measure/bar.h). Odd perturbations also move zeros, so that a
kink at 0 shows. Perturbations 3 and 4 mirror 1 and 2, and so on, so that both sides of a kink show.
"""

from typing import Any

from assay.call import Call
from assay.regimes import SAME, traits_of
from assay.rules import CONSTANT, ENDS, INTEGERS, Fill, Literal
from assay.spec import DtypeName, TensorSpec

WIDE = {
    "float16": "float64",
    "bfloat16": "float64",
    "float32": "float64",
    "float64": "float64",
    "complex64": "complex128",
    "complex128": "complex128",
}
# Half an ulp of numbers just above a power of two, relative to the number.
HALF_UNIT = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2.0**-53,
    "complex64": 2.0**-24,
    "complex128": 2.0**-53,
}
# … where half precision is computed in float32: its inputs are exact, and only float32 is rounded. The bar of
# half precision does not grow with the number of terms, so this leaves room for sums.
IN_FLOAT32 = {"float16": 2.0**-20, "bfloat16": 2.0**-20}


class WideCall(Call):
    """One evaluation of a case in float64; `of` is the call in the case's own dtypes."""

    def __init__(self, of: Call, move: int) -> None:
        super().__init__(of.framework, of.native, of.functions, of.hand_over, of.job)
        self.move = move
        self.barred = False  # the bars are those of the call in the case's own dtypes
        self.fixed = (INTEGERS, ENDS) if of.job.values == SAME else (INTEGERS, ENDS, CONSTANT)
        in_float32 = self.entry is not None and traits_of(self.entry).in_float32
        self.units = HALF_UNIT | IN_FLOAT32 if in_float32 else HALF_UNIT
        self.upstream_of = of.upstream_dtypes
        self._name_arguments()

    def _build(self, value: Any, parameter: str, path: str) -> Any:
        if isinstance(value, DtypeName | str) and value in WIDE:
            value = type(value)(WIDE[value])
        return super()._build(value, parameter, path)

    def _as_asked(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        if spec.dtype not in WIDE:
            return tensor
        tensor = self.framework.widened(tensor, WIDE[spec.dtype])
        # Integers and listed values are labels, counts or corners, which have no rounding error.
        fixed = isinstance(fill, Literal) or isinstance(fill, Fill) and fill.kind in self.fixed
        if self.move and not fixed:
            tensor = self._moved(tensor, spec.dtype, spec.index, self.move % 2 == 1)
        return tensor

    def _moved(self, tensor: Any, dtype: str, number: int, zeros_too: bool) -> Any:
        pair, mirrored = divmod(self.move - 1, 4)
        seed = 1024 * (2 * pair + mirrored % 2) + number
        unit = self.units[dtype] * (-1 if mirrored > 1 else 1)
        return self.framework.moved(tensor, unit, seed, zeros_too)

    def _note_overwritten(self) -> None:
        """Does nothing: this is the reference."""

    def _upstream(self, position: int, shape: Any, dtype: str) -> Any:
        narrow = self.upstream_of.get(position, dtype)
        gradient = self.framework.widened(super()._upstream(position, shape, narrow), dtype)
        return self._moved(gradient, narrow, 512 + position, False) if self.move else gradient


def evaluations(of: Call) -> list[tuple[list[Any], list[Any]]]:
    """(outputs, gradients) of the truth and of every perturbation."""
    function = of.functions.of(of.job, of.entry)
    found = []
    for move in range(of.job.perturbations + 1):
        call = WideCall(of, move)
        call.evaluate(function)
        found.append((call.outputs, call.gradients))
    return found
