"""The truth of a case: the reference function in float64 on the same inputs, and on perturbed inputs.

The inputs are filled in their own dtype and then widened, which is exact. With `move` k > 0, every
floating-point input changes by up to half a unit in its last place, in its own dtype or in that of the
result if that is finer. No result can be more precise than the change that this causes (src/measure/bar.h).
Odd perturbations also move zeros, so that a kink at 0 shows. Perturbations 3 and 4 mirror 1 and 2, and so on,
so that both sides of a kink show.

Before a fault is believed, more evaluations follow, which count at some elements only:
- with every intermediate result perturbed, where terms cancel for structural reasons;
- under wide values with smaller inputs, where the truth is NaN because float64 overflows on the way.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from assay import reference
from assay.bugs import note_bug
from assay.call import Call
from assay.precise import precise
from assay.regimes import SAME, specs_in, traits_of
from assay.rules import CONSTANT, ENDS, INTEGERS, Fill, Literal
from assay.spec import DtypeName, TensorSpec
from assay.wire import DTYPES

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
BELIEVED_FROM = 12  # perturbations that the slot asks for before it believes a fault
# Evaluations with perturbed intermediate results, for up to so many elements of inputs.
ROUNDINGS = {1 << 16: 4, 1 << 20: 2}
# Regimes without this have exact or special outputs, which no rounding excuses.
ROUNDED = frozenset({"usual", "wide", "layout", "constant", "nan", "infinity"})


class WideCall(Call):
    """One evaluation of a case in float64; `of` is the call in the case's own dtypes."""

    def __init__(self, of: Call, move: int) -> None:
        super().__init__(of.framework, of.native, of.functions, of.hand_over, of.job)
        self.move = move
        self.barred = False  # the bars are those of the call in the case's own dtypes
        self.fixed = (INTEGERS, ENDS) if of.job.values == SAME else (INTEGERS, ENDS, CONSTANT)
        in_float32 = self.entry is not None and traits_of(self.entry).in_float32
        units = HALF_UNIT | IN_FLOAT32 if in_float32 else HALF_UNIT
        # An operation of mixed dtypes computes in the dtype of its result, where narrower inputs are exact.
        results = [HALF_UNIT[name] for leaf in of.outputs if (name := DTYPES[leaf.dtype]) in WIDE]
        coarsest = max(results, default=1.0)
        self.units = {dtype: min(unit, coarsest) for dtype, unit in units.items()}
        self.upstream_of = of.upstream_dtypes
        self.found: dict[bool, dict[str, Any]] = {}  # the results, and the gradients
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

    def _handed_over(self, leaves: list[tuple[str, Any]], gradients: bool) -> list[tuple[str, Any]]:
        self.found[gradients] = dict(leaves)
        return leaves

    def _note_overwritten(self) -> None:
        """Does nothing: this is the reference."""

    def _upstream(self, position: int, shape: Any, dtype: str) -> Any:
        narrow = self.upstream_of.get(position, dtype)
        gradient = self.framework.widened(super()._upstream(position, shape, narrow), dtype)
        return self._moved(gradient, narrow, 512 + position, False) if self.move else gradient


class Beside(WideCall):
    """An evaluation that repeats the truth, except at elements where its own value shows something."""

    def __init__(self, of: Call, truth: WideCall) -> None:
        super().__init__(of, 0)
        self.truth = truth
        self.shows = False  # some element differs from the truth

    def _handed_over(self, leaves: list[tuple[str, Any]], gradients: bool) -> list[tuple[str, Any]]:
        known, tensor_type = self.truth.found.get(gradients, {}), self.framework.tensor_type

        def merged(path: str, value: Any) -> Any:
            right = known.get(path)
            alike = isinstance(value, tensor_type) and isinstance(right, tensor_type)
            if not alike or self.framework.shape(value) != self.framework.shape(right):
                return value
            merged = self._merged(right, value, gradients)
            self.shows = self.shows or merged is not right
            return merged

        return [(path, merged(path, value)) for path, value in leaves]

    def _merged(self, right: Any, value: Any, gradients: bool) -> Any:
        raise NotImplementedError


class Rounded(Beside):
    """Every intermediate result moves by up to a unit, because kernels differ by as much. Counts where that
    moves the truth by more than the few ulps that a result without cancellation loses."""

    def unit(self) -> float:
        """A unit in the last place of the case's coarsest dtype. PyTorch's functions round the result of each
        operation to it; references in float32 do not."""
        units = HALF_UNIT if self.entry is not None and self.entry.own else self.units
        specs = specs_in(self.named.values())
        return 2 * max((units[spec.dtype] for spec in specs if spec.dtype in WIDE), default=0.0)

    def _merged(self, right: Any, value: Any, gradients: bool) -> Any:
        if not gradients and self.job.values not in ROUNDED:
            return right
        # For PyTorch's functions the other lane is the truth: no error of it widens the bar (kBarFactor).
        few = self.unit() / 2 if self.entry is not None and self.entry.own else self.unit()
        return self.framework.cancelled(right, value, few)


class Smaller(Beside):
    """The inputs have the fourth root of their magnitudes. Counts where that turns NaN into a number."""

    def _as_asked(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        tensor = super()._as_asked(tensor, spec, fill)
        return self.framework.smaller(tensor) if spec.dtype in WIDE else tensor

    def _merged(self, right: Any, value: Any, gradients: bool) -> Any:
        return self.framework.without_nan(right, value)


def shared_fault(of: Call, truth: WideCall) -> str:
    """What PyTorch's own float64 says where the reference is another formula (assay.torch_cases.second)."""
    call = None if of.entry is None else of.entry.call
    if getattr(call, "second", None) is None:
        return ""
    own = WideCall(of, 0)
    try:
        own.evaluate(call.function)
    except Exception as error:  # float64 has no kernel
        note_bug(of.job.api, error)
        return ""
    torch = reference.torch
    tensors = [
        (own.found[side].get(path), right)
        for side in truth.found
        for path, right in truth.found[side].items()
    ]
    pairs = [pair for pair in tensors if all(isinstance(each, torch.Tensor) for each in pair)]
    if all(
        left.shape == right.shape and torch.allclose(left, right, 1e-9, 1e-12, True) for left, right in pairs
    ):
        return ""
    return "PyTorch's own float64 disagrees with the second opinion too"


def evaluations(of: Call) -> list[tuple[list[Any], list[Any]]]:
    """(outputs, gradients) of the truth and of every perturbation."""
    function = of.functions.of(of.job, of.entry)
    before_a_fault = of.job.perturbations >= BELIEVED_FROM
    truth = WideCall(of, 0)
    finest = precise(reference.torch, of.entry, of.job, of.named, function) if before_a_fault else function
    truth.evaluate(finest)
    if before_a_fault:
        of.note = shared_fault(of, truth)
    calls = [truth]
    for move in range(1, of.job.perturbations + 1):
        calls.append(WideCall(of, move))
        calls[-1].evaluate(function)
    if before_a_fault and hasattr(of.framework, "rounding"):
        calls += more(of, truth, function)
    return [(call.outputs, call.gradients) for call in calls]


def more(of: Call, truth: WideCall, function: Any) -> list[WideCall]:
    """The evaluations that count at some elements only. One that fails is left out, and so is what follows
    two roundings that show nothing: then no terms cancel."""
    calls: list[WideCall] = []
    if of.job.values == "wide":
        smaller = Smaller(of, truth)
        if _shows(smaller, function, nullcontext()):
            calls.append(smaller)
    roundings = next((count for most, count in ROUNDINGS.items() if of.elements <= most), 0)
    for number in range(roundings):
        rounded = Rounded(of, truth)
        if _shows(rounded, function, of.framework.rounding(rounded.unit(), 4096 * (number + 1))):
            calls.append(rounded)
        elif number:  # one may show nothing by chance
            break
    return calls


def _shows(call: Beside, function: Any, context: AbstractContextManager[Any]) -> bool:
    try:
        with context:
            call.evaluate(function)
    except Exception as error:  # an operation that cannot be intercepted, or a root that leaves the domain
        note_bug(call.job.api, error)
        return False
    return call.shows
