"""The faults that `assay mutate` plants."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from assay.mutation import leaves as of
from assay.mutation import misread
from assay.mutation.elements import packed, write_back
from assay.mutation.leaves import elements_among, inapplicable
from assay.results import flatten
from assay.spec import TensorSpec

Changed = tuple[list[Any], dict[str, Any]]
Leaves = list[tuple[str, Any]]


class Fault:
    """A fault overrides the methods for what it changes. `call` is a mutated.Watched: its `draw` makes every
    choice, and its `note` records the location."""

    raises = False  # whether the fault is an exception

    def __init__(self, what: str, kind: str, aim: float | None = None) -> None:
        self.what = what
        self.kind = kind  # "value" or "structure"
        self.aim = aim  # the required share of killed mutants

    def arguments(
        self, call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]
    ) -> Changed:
        """The arguments that the call gets."""
        return args, kwargs

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that is called."""
        return function

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        """Called when an input has its values."""

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        """The results that the lane returns."""
        return leaves

    def gradients(self, call: Any, leaves: Leaves) -> Leaves:
        """The gradients that the lane returns."""
        return leaves


class Result(Fault):
    """A fault that `change` makes in a result, or in a gradient."""

    def __init__(
        self, what: str, kind: str, aim: float | None, change: Callable[..., Leaves], of: str = "results"
    ) -> None:
        super().__init__(what, kind, aim)
        setattr(self, of, change)


Gradient = partial(Result, of="gradients")


class Argument(Fault):
    """A named argument has another value; an omitted one has its default."""

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
        if name is None:  # for a layer this runs for its constructor and for its call
            return args, kwargs
        place = names.index(name)
        value = args[place] if place < len(args) else kwargs.get(name, default_of(call, name))
        changed = self.change(call, value)
        if changed is None:
            return args, kwargs
        call.note(f"{name}={changed!r} instead of {value!r}")
        return misread.with_argument(args, kwargs, place, name, changed)

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        return leaves if call.planted else inapplicable(f"no argument {' or '.join(sorted(self.names))}")


def default_of(call: Any, name: str) -> Any:
    """The default of the API's parameter; None if it has none."""
    known = inspect.signature(call.entry.call).parameters if call.entry is not None else {}
    found = known[name].default if name in known else None
    return None if found is inspect.Parameter.empty else found


def hundredfold(call: Any, value: Any) -> float | None:
    """100 times a float; None for other values."""
    return 100 * value if isinstance(value, float) else None


def the_other(call: Any, value: Any) -> Any:
    """The other boolean, or 1 - value for degrees of freedom of 0 or 1."""
    if isinstance(value, bool):
        return not value
    return 1 - value if value in (0, 1) else None


def next_axis(call: Any, value: Any) -> Any:
    """The next axis, or next axes; None if the case has no tensor with two axes."""
    specs = [spec for spec in call.specs() if spec.ndim > 1]
    if not specs:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + 1) % specs[0].ndim
    if isinstance(value, list | tuple) and value and all(type(axis) is int for axis in value):
        return type(value)((axis + 1) % specs[0].ndim for axis in value)
    return None


class Misread(Fault):
    """The call gets other arguments."""

    def __init__(self, what: str, aim: float | None, change: Callable[..., Changed]) -> None:
        super().__init__(what, "value", aim)
        self.arguments = change

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        return leaves if call.planted else inapplicable("no such argument")


class SeedIgnored(Fault):
    """Draws do not depend on the seed."""

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        if call.entry is None or call.entry.family != "random":
            inapplicable("no draw")

        def seeded(*args: Any, **kwargs: Any) -> Any:
            call.framework.seed(1234)
            return function(*args, **kwargs)

        call.note("seed 1234")
        return seeded


class NoKernel(Fault):
    """The call raises the error of a missing kernel."""

    raises = True

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def raising(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("(planted) the kernel is not registered; not implemented for 'it'")

        call.note("no kernel")
        return raising


class InputOverwritten(Fault):
    """The call writes into an input that it must not change."""

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        """Collects the inputs that may not change."""
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
    """What the call updates keeps its old value: statistics, state, an in-place argument."""

    def filled(self, call: Any, path: str, spec: TensorSpec, tensor: Any) -> None:
        call.before[path] = call.copy_of(tensor)

    def results(self, call: Any, leaves: Leaves) -> Leaves:
        """The results with the first updated value replaced by the old one."""
        changes = call.changes
        for place, (path, value) in enumerate(leaves):
            name = path.removeprefix(".state.").removeprefix(".").removesuffix(" afterwards")
            name = changes if path in ("", ".changed") else name
            stale, fresh = call.before.get(name), call.copy_of(value)
            if stale is None or fresh is None or (stale.dtype, stale.shape) != (fresh.dtype, fresh.shape):
                continue
            call.note(f"{stale.dtype} {name or 'result'} as it was")
            return of.replaced(leaves, place, stale)
        return inapplicable("nothing that is updated")


class LowerPrecision(Fault):
    """The kernel of the next lower precision: inputs and results are rounded to it."""

    LOWER = {"float64": "float32", "float32": "float16"}

    def arguments(
        self, call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]
    ) -> Changed:
        if call.changes:
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
    """Ties are broken the other way: integer and boolean results come from inputs to which a ramp of ±2⁻²⁰ is
    added. Exact values have ties; for rounding functions x.5 is one."""

    STEP = 2.0**-20

    def around(self, call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, called a second time with the ramp added to its first tensor."""
        if call.job.values != "exact" or call.changes:
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
        """The results with integers and booleans from the second call."""
        framework = call.framework
        other = dict(flatten(call.other, "", framework.tensor_type, framework.sparse_parts))
        changed = list(leaves)
        for place, found in elements_among(call, leaves):
            path = leaves[place][0]
            if not found.floating and path in other:
                changed[place] = path, other[path]
        return changed


# Required shares of killed mutants.
EVERY, NEARLY, MOST = 1.0, 0.99, 0.95

FAULTS: dict[str, Fault] = {
    "off_5_percent": Result("one element is off by 5%", "value", NEARLY, of.off_by(0.05)),
    "off_0.1_percent": Result("one element is off by 0.1%", "value", MOST, of.off_by(0.001)),
    "off_8_ulp": Result("one element is off by 8 ulps", "value", 0.9, of.off_by_ulps(8)),
    "off_by_one": Result("an integer is off by 1, or a boolean is inverted", "value", EVERY, of.off_by_one),
    "sign": Result("one element has the other sign", "value", NEARLY, of.other_sign),
    "nan_swallowed": Result("NaN becomes 0", "value", EVERY, of.nan_swallowed),
    "last_row": Result("the last row is zeros", "value", NEARLY, of.last_row_missing),
    "wrapped": Result("64-bit integers wrap at 2^31", "value", EVERY, of.wrapped),
    "dtype": Result("another dtype", "structure", EVERY, of.other_dtype),
    "shape": Result("one additional axis of extent 1", "structure", EVERY, of.other_shape),
    "axes": Result("the last two axes are swapped", "structure", EVERY, of.axes_swapped),
    "output_lost": Result("the last of several results is missing", "structure", EVERY, of.output_lost),
    "gradient_1.01": Gradient("the gradient of one input is 1% too large", "value", NEARLY, of.scaled(1.01)),
    "gradient_lost": Gradient("the gradient of one input is None", "structure", EVERY, of.gradient_lost),
    "gradient_of_neighbour": Gradient(
        "one gradient belongs to another input or to the previous element", "value", NEARLY, of.neighbours
    ),
    "axis": Argument(
        "the call uses the next axis", "structure", EVERY, "axis dim start_axis axes", next_axis
    ),
    "epsilon": Argument("epsilon is 100 times larger", "value", None, "epsilon eps", hundredfold),
    "biased": Argument(
        "a biased estimate replaces an unbiased one, or the reverse",
        "value",
        NEARLY,
        "unbiased correction",
        the_other,
    ),
    "lower_precision": LowerPrecision("the call computes in the next lower precision", "value", NEARLY),
    "ties": Ties("ties are broken the other way", "value", None),
    "stale_state": StaleState("updated state keeps its old value", "value", NEARLY),
    "last_index": Misread("the largest index is read as the one before it", NEARLY, misread.last_index),
    "stride_ignored": Misread("strides of the second tensor are ignored", MOST, misread.stride_ignored),
    "argument_ignored": Misread(
        "an argument has no effect",
        MOST,
        lambda *of: misread.argument_ignored(*of, default_of),
    ),
    "rate_pooled": Misread("parameters of a draw below their mean count 10% more", None, misread.rate_pooled),
    "seed_ignored": SeedIgnored("draws do not depend on the seed", "value", MOST),
    "row_repeated": Result("the second row repeats the first", "value", MOST, of.row_repeated),
    "input_overwritten": InputOverwritten("one element of an input changes by 5%", "structure", EVERY),
    "no_kernel": NoKernel("the kernel is missing", "structure", EVERY),
}
