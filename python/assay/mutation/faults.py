"""The faults that `assay mutate` plants: what a fault may change of a call, and the table of them all."""

import inspect
from collections.abc import Callable
from typing import Any

from assay.mutation import leaves as of
from assay.mutation.elements import packed, write_back
from assay.mutation.leaves import elements_among, inapplicable
from assay.results import flatten
from assay.spec import TensorSpec

Changed = tuple[list[Any], dict[str, Any]]
Leaves = list[tuple[str, Any]]


class Fault:
    """A fault changes what its methods say, by default nothing. `call` is a mutated.Watched: its `draw`
    makes every choice, its `note` says where the fault is."""

    raises = False  # the fault is that the call raises

    def __init__(self, what: str, kind: str, aim: float | None = None) -> None:
        self.what = what
        self.kind = kind  # "value", "structure": what the score counts together
        self.aim = aim  # the share that has to be found

    def arguments(
        self, call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]
    ) -> Changed:
        return args, kwargs

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        """An input has its values."""

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        return leaves

    def gradients(self, call: Any, leaves: Leaves) -> Leaves:
        return leaves


class Result(Fault):
    def __init__(self, what: str, kind: str, aim: float | None, change: Callable[..., Leaves]) -> None:
        super().__init__(what, kind, aim)
        self.results = change


class Gradient(Fault):
    def __init__(self, what: str, kind: str, aim: float | None, change: Callable[..., Leaves]) -> None:
        super().__init__(what, kind, aim)
        self.gradients = change


class Argument(Fault):
    """A named argument is taken for another; one that the case leaves out has its default."""

    def __init__(
        self, what: str, kind: str, aim: float | None, names: str, change: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(what, kind, aim)
        self.names = frozenset(names.split())
        self.change = change

    def arguments(
        self, call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]
    ) -> Changed:
        name = next((name for name in names if name in self.names), None)
        if name is None:  # perhaps it is one of those that make the layer, or of those that it is called with
            return args, kwargs
        place = names.index(name)
        value = args[place] if place < len(args) else kwargs.get(name, default_of(call, name))
        changed = self.change(call, value)
        if changed is None:
            return args, kwargs
        call.note(f"{name}={changed!r} instead of {value!r}")
        if place < len(args):
            return [*args[:place], changed, *args[place + 1 :]], kwargs
        return args, {**kwargs, name: changed}

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        return leaves if call.planted else inapplicable(f"no argument {' or '.join(sorted(self.names))}")


def default_of(call: Any, name: str) -> Any:
    known = inspect.signature(call.entry.call).parameters if call.entry is not None else {}
    found = known[name].default if name in known else None
    return None if found is inspect.Parameter.empty else found


def hundredfold(call: Any, value: Any) -> float | None:
    return 100 * value if isinstance(value, float) else None


def the_other(call: Any, value: Any) -> Any:
    """Of a truth value, or of 0 and 1 degrees of freedom."""
    if isinstance(value, bool):
        return not value
    return 1 - value if value in (0, 1) else None


def next_axis(call: Any, value: Any) -> Any:
    specs = [spec for spec in call.specs() if spec.ndim > 1]
    if not specs:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + 1) % specs[0].ndim
    if isinstance(value, list | tuple) and value and all(type(axis) is int for axis in value):
        return type(value)((axis + 1) % specs[0].ndim for axis in value)
    return None


class NoKernel(Fault):
    raises = True

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def raising(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("(planted) the kernel is not registered; not implemented for 'it'")

        call.note("no kernel")
        return raising


class InputOverwritten(Fault):
    """The call writes into an input that it has no business to write to."""

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        parameter = path.split("[")[0]
        sparse = call.entry is not None and parameter in call.entry.layouts
        if spec.size and not spec.strides and not sparse and spec.index not in call.promised():
            call.inputs_of_case.append((path, tensor))

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def overwriting(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            path, tensor = call.draw.choice(call.inputs_of_case or inapplicable("no input"))
            found = call.copy_of(tensor)
            place = found.a_number(call.draw) if found is not None else None
            if place is None:
                inapplicable("no number in that input")
            of.nudge(found, place, 0.05)
            write_back(call.framework, tensor, found)
            call.note(f"{found.dtype} input {path}[{place}]")
            return result

        return overwriting


class StaleState(Fault):
    """What the call promises to update is left as it was: statistics, a state, an argument in place."""

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        call.before[path] = call.copy_of(tensor)

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        changes = call.entry.changes if call.entry is not None else ""
        for place, (path, value) in enumerate(leaves):
            name = path.removeprefix(".state.").removeprefix(".").removesuffix(" afterwards")
            name = changes if path in ("", ".changed") else name
            stale, fresh = call.before.get(name), call.copy_of(value)
            if stale is None or fresh is None or (stale.dtype, stale.shape) != (fresh.dtype, fresh.shape):
                continue
            call.note(f"{stale.dtype} {name or 'result'} as it was")
            return [*leaves[:place], (path, stale), *leaves[place + 1 :]]
        return inapplicable("nothing that is updated")


class LowerPrecision(Fault):
    """The kernel of the next lower precision: inputs and results have its digits."""

    LOWER = {"float64": "float32", "float32": "float16"}

    def arguments(
        self, call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]
    ) -> Changed:
        if call.entry is not None and call.entry.changes:
            inapplicable("it works in place")
        return [self._lowered(call, arg) for arg in args], {
            name: self._lowered(call, arg) for name, arg in kwargs.items()
        }

    def _lowered(self, call: Any, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._lowered(call, part) for part in value)
        framework = call.framework
        if not isinstance(value, framework.tensor_type) or framework.sparse_parts(value) is not None:
            return value
        dtype = framework.tensor_dtype(value)
        if dtype not in self.LOWER:
            return value
        call.note(f"{dtype} in {self.LOWER[dtype]}")
        return framework.widened(framework.widened(value, self.LOWER[dtype]), dtype)

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        changed = list(leaves)
        for place, found in elements_among(call, leaves):
            lower = self.LOWER.get(found.part)
            if lower is None:
                continue
            call.note(f"{found.dtype} in {lower}")
            for part in range(found.count):
                rounded = type(found)(lower, (1,), packed(lower, found.get(part)))
                found.put(part, rounded.get(0))
            changed[place] = leaves[place][0], found
        return changed if call.planted else inapplicable("nothing of float64 or float32")


class Ties(Fault):
    """Of equal elements another is taken: whole and truth values are those of inputs that a ramp of 2⁻²⁰
    sets apart, up or down. Exact values have ties; where a function only rounds, x.5 is one."""

    STEP = 2.0**-20

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        if call.job.values != "exact" or call.entry is not None and call.entry.changes:
            inapplicable("no ties")
        step = self.STEP * call.draw.choice((-1, 1))

        def apart(value: Any) -> Any:
            copy = call.framework.constant(call.framework.writable(value))
            found = call.copy_of(copy)
            if found is None or found.dtype not in ("float32", "float64"):
                return value
            for place in range(found.count):
                found.put(place, found.get(place) + (place + 1) * step)
            write_back(call.framework, copy, found)
            call.note(f"{found.dtype} ties {'up' if step > 0 else 'down'}")
            return copy

        def twice(*args: Any, **kwargs: Any) -> Any:
            tensor = call.framework.tensor_type
            first = next((place for place, arg in enumerate(args) if isinstance(arg, tensor)), None)
            if first is None:
                inapplicable("no tensor by position")
            nudged = [apart(arg) if place == first else arg for place, arg in enumerate(args)]
            call.framework.seed(call.job.seed)
            call.other = function(*nudged, **kwargs)
            call.framework.seed(call.job.seed)
            return function(*args, **kwargs)

        return twice

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        framework = call.framework
        other = dict(flatten(call.other, "", framework.tensor_type, framework.sparse_parts))
        changed = list(leaves)
        for place, found in elements_among(call, leaves):
            path = leaves[place][0]
            if not found.floating and path in other:
                changed[place] = path, other[path]
        return changed


# The share that has to be found where a fault changes a bit.
EVERY, NEARLY, MOST = 1.0, 0.99, 0.95

FAULTS: dict[str, Fault] = {
    "off_5_percent": Result("one element off by 5%", "value", NEARLY, of.off_by(0.05)),
    "off_0.1_percent": Result("one element off by 0.1%", "value", MOST, of.off_by(0.001)),
    "off_8_ulp": Result("one element off by 8 ulp", "value", 0.9, of.off_by_ulps(8)),
    "off_by_one": Result("a whole number off by 1, a truth value the other", "value", EVERY, of.off_by_one),
    "sign": Result("one element with the other sign", "value", NEARLY, of.other_sign),
    "nan_swallowed": Result("NaN is 0", "value", EVERY, of.nan_swallowed),
    "last_row": Result("the last row is not written: zeros", "value", NEARLY, of.last_row_missing),
    "wrapped": Result("64-bit whole numbers wrap at 2^31", "value", EVERY, of.wrapped),
    "dtype": Result("another dtype", "structure", EVERY, of.other_dtype),
    "shape": Result("another shape: an axis of 1 more", "structure", EVERY, of.other_shape),
    "axes": Result("the last two axes swapped", "structure", EVERY, of.axes_swapped),
    "output_lost": Result("the last of several results is missing", "structure", EVERY, of.output_lost),
    "gradient_1.01": Gradient("the gradient of one input times 1.01", "value", NEARLY, of.scaled(1.01)),
    "gradient_lost": Gradient("the gradient of one input is None", "structure", EVERY, of.gradient_lost),
    "gradient_of_neighbour": Gradient(
        "one gradient is that of another input, or of the element before", "value", NEARLY, of.neighbours
    ),
    "axis": Argument("the next axis", "structure", EVERY, "axis dim start_axis axes", next_axis),
    "epsilon": Argument("epsilon times 100", "value", None, "epsilon eps", hundredfold),
    "biased": Argument("biased for unbiased, or reversed", "value", NEARLY, "unbiased correction", the_other),
    "lower_precision": LowerPrecision("computed in the next lower precision", "value", NEARLY),
    "ties": Ties("ties go the other way", "value", None),
    "stale_state": StaleState("what is updated stays as it was", "value", NEARLY),
    "input_overwritten": InputOverwritten("an input is changed by 5% in one element", "structure", EVERY),
    "no_kernel": NoKernel("the kernel is missing", "structure", EVERY),
}  # fmt: skip
