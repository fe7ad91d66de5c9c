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

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from assay import reference
from assay.bugs import note_bug
from assay.call import Call
from assay.frameworks import Framework
from assay.precise import precise
from assay.regimes import OBSERVED, SAME, specs_in, traits_of
from assay.rules import Fill, Literal
from assay.shared import CONSTANT, ENDS, INTEGERS
from assay.spec import TensorSpec
from assay.variant import Leaves, Variant
from assay.wire import DTYPES

WIDE = dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float64")
WIDE |= dict.fromkeys(("complex64", "complex128"), "complex128")
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
# Other regimes have exact outputs, which no rounding excuses.
ROUNDED = frozenset({"usual", "wide", "layout", "constant", "nan", "infinity", "bulk", "observed"})


class Widened(Variant):
    """An evaluation in float64; `of` is the call in the case's own dtypes, whose bars are the ones that
    count. `beside` says at which elements it counts, if not at all."""

    barred = False
    checks_inputs = False

    def __init__(self, of: Call, move: int = 0, beside: "Beside | None" = None) -> None:
        self.framework = of.framework
        self.move = move
        self.beside = beside
        self.fixed = (INTEGERS, ENDS) if of.job.values == SAME else (INTEGERS, ENDS, CONSTANT)
        self.units = units_of(of)
        self.upstream_dtypes = of.upstream_dtypes
        self.unit_of_numbers = rounding_unit(of) / 2 if move else 0.0
        self.found: dict[bool, dict[str, Any]] = {}  # the results, and the gradients

    def dtype(self, name: Any) -> Any:
        return type(name)(WIDE[name]) if name in WIDE else name

    def tensor(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        """The tensor, widened and perturbed."""
        if spec.dtype not in WIDE:
            return tensor
        tensor = self.framework.widened(tensor, WIDE[spec.dtype])
        # Integers and listed values are labels, counts or corners, which have no rounding error.
        fixed = isinstance(fill, Literal) or isinstance(fill, Fill) and fill.kind in self.fixed
        if self.move and not fixed:
            tensor = self._moved(tensor, spec.dtype, spec.index, self.move % 2 == 1)
        return tensor if self.beside is None else self.beside.narrow(tensor)

    def arguments(self, parameters: Any, args: Any, kwargs: Any) -> tuple[list[Any], Any]:
        """Kernels round Python's numbers to the dtype in which they compute."""
        unit = self.unit_of_numbers
        if not unit:
            return args, kwargs
        return [_with_digits(each, unit) for each in args], {
            key: _with_digits(each, unit) for key, each in kwargs.items()
        }

    def _moved(self, tensor: Any, dtype: str, number: int, zeros_too: bool) -> Any:
        pair, mirrored = divmod(self.move - 1, 4)
        seed = 1024 * (2 * pair + mirrored % 2) + number
        unit = self.units[dtype] * (-1 if mirrored > 1 else 1)
        return self.framework.moved(tensor, unit, seed, zeros_too)

    def upstream(self, position: int, dtype: str, make: Callable[[str], Any]) -> Any:
        narrow = self.upstream_dtypes.get(position, dtype)
        gradient = self.framework.widened(make(narrow), dtype)
        return self._moved(gradient, narrow, 512 + position, False) if self.move else gradient

    def results(self, leaves: Leaves, gradients: bool) -> Leaves:
        """The results, which are kept, or what they show beside the truth."""
        self.found[gradients] = dict(leaves)
        return leaves if self.beside is None else self.beside.merged(self.framework, leaves, gradients)


def _with_digits(value: Any, unit: float) -> Any:
    """A number with the digits of a dtype with this half unit."""
    if type(value) is not float or not math.isfinite(value):
        return value
    share, exponent = math.frexp(value)
    return math.ldexp(round(share / unit) * unit, exponent)


@dataclass(slots=True)
class Beside:
    """What an evaluation shows beside the truth: its results repeat those of the truth, except at elements
    where `merge(right, value, gradients)` is another tensor than `right`."""

    truth: Widened
    merge: Callable[[Any, Any, bool], Any]
    narrow: Callable[[Any], Any] = lambda tensor: tensor  # changes the inputs
    shows: bool = False  # some element differs from the truth

    def merged(self, framework: Framework, leaves: Leaves, gradients: bool) -> Leaves:
        """The results of the truth with the elements that count."""
        return [(path, self._one(framework, path, value, gradients)) for path, value in leaves]

    def _one(self, framework: Framework, path: str, value: Any, gradients: bool) -> Any:
        right = self.truth.found.get(gradients, {}).get(path)
        alike = isinstance(value, framework.tensor_type) and isinstance(right, framework.tensor_type)
        if not alike or framework.shape(value) != framework.shape(right):
            return value
        merged = self.merge(right, value, gradients)
        self.shows = self.shows or merged is not right
        return merged


def units_of(of: Call) -> dict[str, float]:
    """By dtype, by how much an input may be perturbed, relative to its size."""
    in_float32 = of.entry is not None and traits_of(of.entry).in_float32
    units = HALF_UNIT | IN_FLOAT32 if in_float32 else HALF_UNIT
    # An operation of mixed dtypes computes in the dtype of its result, where narrower inputs are exact.
    results = [HALF_UNIT[name] for leaf in of.outputs if (name := DTYPES[leaf.dtype]) in WIDE]
    coarsest = max(results, default=1.0)
    return {dtype: min(unit, coarsest) for dtype, unit in units.items()}


def rounding_unit(of: Call) -> float:
    """A unit in the last place of the case's coarsest dtype. PyTorch's functions round the result of each
    operation to it; references in float32 do not."""
    units = HALF_UNIT if of.entry is not None and of.entry.own else units_of(of)
    specs = specs_in(of.inputs.named.values())
    return 2 * max((units[spec.dtype] for spec in specs if spec.dtype in WIDE), default=0.0)


def rounded(of: Call, truth: Widened) -> Beside:
    """Every intermediate result moves by up to a unit, because kernels differ by as much. Counts where that
    moves the truth by more than the few ulps that a result without cancellation loses."""
    # For PyTorch's functions the other lane is the truth: no error of it widens the bar (kBarFactor).
    few = rounding_unit(of) / 2 if of.entry is not None and of.entry.own else rounding_unit(of)

    def merge(right: Any, value: Any, gradients: bool) -> Any:
        if not gradients and of.job.values not in ROUNDED:
            return right
        return of.framework.cancelled(right, value, few)

    return Beside(truth, merge)


def smaller(of: Call, truth: Widened) -> Beside:
    """The inputs have the fourth root of their magnitudes. Counts where that turns NaN into a number."""
    framework = of.framework
    return Beside(truth, lambda right, value, _: framework.without_nan(right, value), framework.smaller)


def evaluated(of: Call, variant: Widened, function: Any) -> Call:
    """The call of another variant, evaluated."""
    call = Call(of.context, of.job, variant)
    call.inputs.name_arguments()
    without = of.entry is not None and of.entry.own and not specs_in(of.inputs.named.values())
    with of.framework.wide_default() if without else nullcontext():  # a window has the default dtype
        call.evaluate(function)
    return call


def shared_fault(of: Call, truth: Widened) -> str:
    """What PyTorch's own float64 says where the reference is another formula
    (assay.torch_cases.independent_formulas)."""
    call = None if of.entry is None else of.entry.call
    if getattr(call, "formula", None) is None:
        return ""
    own = Widened(of)
    try:
        evaluated(of, own, call.function)
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
    truth, finest = Widened(of), function
    if before_a_fault:
        finest = precise(reference.torch, of.entry, of.job, of.inputs.named, function)
    calls = [evaluated(of, truth, finest)]
    if before_a_fault:
        of.note = shared_fault(of, truth)
    for move in range(1, of.job.perturbations + 1):
        calls.append(evaluated(of, Widened(of, move), function))
    if before_a_fault and hasattr(of.framework, "rounding"):
        calls += that_show(of, truth, function)
    return [(call.outputs, call.gradients) for call in calls]


def that_show(of: Call, truth: Widened, function: Any) -> list[Call]:
    """The evaluations that count at some elements only. One that fails is left out, and so is what follows
    two roundings that show nothing: then no terms cancel."""
    calls: list[Call] = []
    if of.job.values in ("wide", OBSERVED):
        calls += _shown(of, smaller(of, truth), function, nullcontext())
    roundings = next((count for most, count in ROUNDINGS.items() if of.inputs.elements <= most), 0)
    for number in range(roundings):
        context = of.framework.rounding(rounding_unit(of), 4096 * (number + 1))
        found = _shown(of, rounded(of, truth), function, context)
        if number and not found:  # one may show nothing by chance
            break
        calls += found
    return calls


def _shown(of: Call, beside: Beside, function: Any, context: AbstractContextManager[Any]) -> list[Call]:
    """The evaluation, if it shows something."""
    try:
        with context:
            call = evaluated(of, Widened(of, 0, beside), function)
    except Exception as error:  # an operation that cannot be intercepted, or a root that leaves the domain
        note_bug(of.job.api, error)
        return []
    return [call] if beside.shows else []
