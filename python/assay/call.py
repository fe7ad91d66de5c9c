"""One case on its way through a lane: inputs, call, differentiation."""

import os
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from assay.dump import Dump
from assay.execution import Execution
from assay.frameworks import Framework
from assay.handover import HandOver
from assay.laws import Law
from assay.layers import LAYER, OPTIMIZER, STEPS, Made
from assay.names import callable_name, public_name
from assay.regimes import (
    FORWARD_ONLY,
    Inputs,
    bar_of,
    equalities_of,
    fill_of,
    is_free,
    skip_of,
    specs_in,
)
from assay.registry import REGISTRY, Api
from assay.results import SEQUENCE, flatten
from assay.rules import Literal, ask
from assay.spec import FLOATING, DtypeName, PlaceName, TensorSpec
from assay.wire import (
    CODES,
    DIFFERENTIABLE,
    SKIPPED,
    UNSUPPORTED,
    Job,
    Leaf,
    Stop,
    count_of,
    refuse,
)

# What a case's time is spent on, in the order of the wire: making and filling tensors, the call, the
# results' way into the arena, differentiation.
STAGES = ("build", "forward", "copy", "backward")
UNSPENT = dict.fromkeys(STAGES, 0)
# Wall time, because asking for CPU time takes 2 µs; benchmarks want it all the same.
CLOCK = time.process_time_ns if os.environ.get("ASSAY_STAGE_CLOCK") == "cpu" else time.perf_counter_ns

MOST_LEAVES = 1 << 14
LARGE_INPUT = 1 << 20  # elements; below that its memory is warm
RESULT_PLACES = ("out", "output")  # parameters that take a tensor for the result
PLAIN = frozenset({int, float, bool, type(None)})  # values that stand for themselves
UPSTREAM = 4.0  # how far upstream gradients of single precision reach from 0, or a power of two farther


class Functions:
    """What stands for each API in a lane: the framework's own function, or the reference of the tables, as
    the lane's execution calls it."""

    def __init__(self, framework: Framework, execution: str = "eager") -> None:
        self.framework = framework
        self.execution = Execution(execution, framework)
        self.known: dict[str, Callable[..., Any]] = {}

    def of(self, job: Job, entry: Api | None) -> Callable[..., Any]:
        found = self.known.get(job.api)
        if found is None:
            found = self._plain(job, entry)
            if entry is None or not entry.kind:
                found = self.execution.wrap(found, job.api)
            self.known[job.api] = found
        return found

    def _plain(self, job: Job, entry: Api | None) -> Callable[..., Any]:
        if job.lane.reference_functions:
            if entry is None:
                raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
            return entry.call
        if entry is None:
            callable_name(job.api)
        return self.framework.resolve(public_name(job.api))


class Call:
    """One case on its way through the lane; `phase` says where it is when something raises."""

    largest = 0  # elements of the largest input that is differentiated
    elements = 0  # of all inputs
    outputs: Sequence[Leaf] = ()
    gradients: Sequence[Leaf] = ()
    differentiable = False
    leaves: Sequence[tuple[str, Any]] = ()
    overwritten: Sequence[str] = ()
    planted = ""  # the fault in it, in words (assay.mutation)
    dump: Dump | None = None  # where inputs and results are written as well
    foreseen = False  # what is not to be run under its values has been answered
    unfilled = False  # large inputs are left as they are, where any number will do

    def __init__(
        self, framework: Framework, native: Any, functions: Functions, hand_over: HandOver, job: Job
    ) -> None:
        self.framework = framework
        self.native = native
        self.functions = functions
        self.hand_over = hand_over
        self.job = job
        self.entry = REGISTRY.get(job.api)
        self.named: dict[str, Any] = {}
        self.rules: Mapping[str, Any] = self.entry.rules if self.entry is not None else {}
        self.taken: tuple[str, ...] = ()  # the parameters of what is called
        self.kept: list[Any] = []  # memory that was filled and is no argument itself
        self.wanted: list[tuple[str, Any]] = []  # inputs that are differentiated, by name
        self.phase = self.stage = "build"
        self.spent = UNSPENT.copy()  # nanoseconds
        self.entered_at = CLOCK()
        self.upstream_dtypes: dict[int, str] = {}  # of an output's upstream gradient, by its place
        self.inputs: list[tuple[str, Any]] = []  # for the dump
        forward_only = job.values in FORWARD_ONLY or not job.settings.backward
        self.forward_only = forward_only or job.lane.no_gradients
        # Results are judged by the error bars of the reference's.
        self.barred = job.settings.error_bar and job.lane.role != "test"

    def run(self) -> None:
        """Fills `outputs` and `gradients`; those of a call that cannot be differentiated are kept."""
        self.evaluate(self._function())

    def run_unfilled(self) -> None:
        """The call alone, with large inputs that hold whatever is in their memory: raises what the framework
        says where it has no kernel, before anybody has touched that memory. Only what may be any number is
        left so (regimes.is_free): values that a call takes in the regimes wide, nan and infinity as well."""
        self.unfilled = True
        function, args, kwargs = self._ready(self._function())
        self._enter("forward")
        self.let_go()  # nobody reads the result either
        self._forward(function, args, kwargs)

    def _function(self) -> Callable[..., Any]:
        """What is called; its arguments have their names then."""
        job, entry = self.job, self.entry
        if entry is None and job.lane.known_only:
            raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
        if entry is not None and entry.skip:
            raise Stop(SKIPPED, entry.skip)
        if (job.construction is not None) != bool(entry is not None and entry.kind):
            refuse(f"{job.api}: layers are made and then called, functions only called")
        self._name_arguments()
        skip = None if self.foreseen else skip_of(entry, self.named, job.values)
        if skip is not None:
            raise Stop(SKIPPED, skip.reason)
        return self.functions.of(job, entry)

    def _ready(self, function: Callable[..., Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """The function as the case calls it, and its arguments."""
        job, entry = self.job, self.entry
        self.framework.seed(job.seed)
        construction = self._construction()
        args, kwargs = self._arguments()
        if construction is not None:
            function = self._made(function, *construction)
            if entry.kind == LAYER:
                function = self.functions.execution.wrap(function, job.api)
        return function, args, kwargs

    def evaluate(self, function: Callable[..., Any]) -> None:
        entry = self.entry
        function, args, kwargs = self._ready(function)
        if self.dump is not None:
            self.dump.save("input", self.inputs)
        self._enter("forward")
        results = self._forward(function, args, kwargs)
        if entry is not None and entry.shown is not None and not self.job.lane.reference_functions:
            results = entry.shown(results, self._given(args, kwargs))
        self._enter("copy")
        leaves = flatten(results, "", self.framework.tensor_type, self.framework.sparse_parts)
        if entry is not None and entry.updates:
            leaves += self._updated(args, kwargs)
        self.leaves = leaves
        if self.dump is not None:
            self.dump.save("output", leaves)
        if len(leaves) > MOST_LEAVES:
            raise Stop(UNSUPPORTED, f"a result of {len(leaves)} parts; assay compares {MOST_LEAVES}")
        equal = equalities_of(entry)
        inputs = Inputs.of(self.named) if self.barred else None
        bar = partial(bar_of, entry, self.job.values, inputs) if self.barred else None
        self.outputs = [
            self.hand_over.leaf(path, value, equal[min(position, len(equal) - 1)] if equal else "value", bar)
            for position, (path, value) in enumerate(self._handed_over(leaves, gradients=False))
        ]
        self._note_overwritten()
        self._enter("backward", stage="build")
        gradients = self._handed_over(self._backward(leaves), gradients=True)
        self._enter("backward", stage="copy")
        if self.dump is not None:
            self.dump.save("grad", gradients)
        self.differentiable = bool(gradients)
        if bar is not None:
            inputs.sizes.extend(count_of(leaf.shape) for leaf in self.outputs)
            bar = partial(bar, upstream=UPSTREAM)
        self.gradients = [self.hand_over.leaf(name, value, "value", bar) for name, value in gradients]
        self.let_go()

    def let_go(self) -> None:
        """From here on the memory of large tensors is not written over when they go: it may never have been
        touched, and is written over where it is given out again."""
        if self.elements >= LARGE_INPUT:
            self.native.scramble(False)

    def _handed_over(self, leaves: list[tuple[str, Any]], gradients: bool) -> list[tuple[str, Any]]:
        """What the slot gets to see of the results, or of the gradients."""
        return leaves

    def _given(self, args: list[Any], kwargs: Any) -> dict[str, Any]:
        """What the call was given, by its parameters' names."""
        return dict(zip(self.taken, args, strict=False)) | kwargs

    def _updated(self, args: list[Any], kwargs: Any) -> list[tuple[str, Any]]:
        """What arguments hold afterwards that a call promises to change beside its result."""
        given = self._given(args, kwargs)
        return [
            (f".{name} afterwards", self.framework.constant(given[name]))
            for name in self.entry.updates
            if isinstance(given.get(name), self.framework.tensor_type)
        ]

    def _promised(self) -> set[int]:
        """The case's tensors that the call may change."""
        promised = [*RESULT_PLACES]
        if self.entry is not None:
            promised += [self.entry.changes, *self.entry.updates]
        return {spec.index for name in promised for spec in specs_in([self.named.get(name)])}

    def _note_overwritten(self) -> None:
        """Inputs that the call changed though nobody promised that."""
        if self.job.lane.reference_functions or self.job.values == "layout":
            return
        changed = self.native.overwritten()
        if not changed:
            return
        free = self._promised()
        self.overwritten = [
            name
            for name, value in self.named.items()
            for spec in specs_in([value])
            if spec.index in changed and spec.index not in free
        ]

    def durations(self) -> tuple[int, ...]:
        """Nanoseconds in each of STAGES so far."""
        self._enter(self.phase)
        return tuple(self.spent.values())

    def _enter(self, phase: str, stage: str = "") -> None:
        """What follows belongs to `phase`; its time counts for `stage`, if that is another."""
        now = CLOCK()
        self.spent[self.stage] += now - self.entered_at
        self.entered_at = now
        self.phase = phase
        self.stage = stage or phase

    # -- inputs --

    def _name_arguments(self) -> None:
        """All arguments by their parameters' names, those that make a layer among them."""
        job, entry = self.job, self.entry
        if job.construction is not None:
            self._names(entry.parameters, *job.construction)
        self.taken = () if entry is None else entry.inputs if entry.kind else entry.parameters
        self._names(self.taken, job.args, job.kwargs)

    def _names(self, parameters: Any, args: Any, kwargs: Any) -> None:
        self.named |= zip(names_of(parameters, args), args, strict=True)
        self.named |= kwargs

    def _construction(self) -> tuple[list[Any], dict[str, Any]] | None:
        """What the case's layer is made with. Its tensors are constants of it."""
        if self.job.construction is None:
            return None
        self._grad_wanted = False
        return self._built(self.entry.parameters, *self.job.construction)

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        grad = self.entry.grad if self.entry is not None else True
        self._grad_wanted = ask(grad, self.named, None) if callable(grad) else grad
        return self._built(self.taken, self.job.args, self.job.kwargs)

    def _built(self, parameters: Any, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        build, names = self._build, names_of(parameters, args)
        positional = [build(value, name, name) for name, value in zip(names, args, strict=True)]
        return positional, {name: build(value, name, name) for name, value in kwargs.items()}

    def _made(self, make: Callable[..., Any], args: list[Any], kwargs: Any) -> Callable[..., Any]:
        """The layer that the case makes, as a function; its parameters are filled and differentiated by."""
        job, entry = self.job, self.entry
        made = entry.call(*args, **kwargs)
        if entry.kind == OPTIMIZER:
            if job.lane.reference_functions:
                return made.call
            return lambda *inputs: self.framework.optimized(make, args, kwargs, STEPS, *inputs)
        layer = None if job.lane.reference_functions else make(*args, **kwargs)
        found = {} if layer is None else self.framework.parameters(layer)
        self.rules = {**self.rules, **made.rules}
        of_case = self._grad_wanted
        parameters = {}
        for place, (name, shape) in enumerate(sorted(made.parameters.items())):
            if layer is not None and (name not in found or tuple(found[name].shape) != tuple(shape)):
                raise ValueError(f"the layer has no parameter {name} of shape {list(shape)}")
            self._grad_wanted = of_case and name not in (*made.state, *made.constants)
            spec = TensorSpec(tuple(shape), made.dtype, job.tensors + place)
            parameters[name] = self._tensor(spec, name, name, found.get(name))
        if left := set(found) - set(made.parameters):
            raise ValueError(f"the layer has further parameters: {', '.join(sorted(left))}")
        if layer is None:
            return self._with_state(lambda *inputs, **named: made.call(parameters, *inputs, **named), made)
        if not made.state:
            return layer
        return lambda *inputs, **named: {
            "result": layer(*inputs, **named), "state": {name: parameters[name] for name in made.state}
        }  # fmt: skip

    @staticmethod
    def _with_state(call: Callable[..., Any], made: Made) -> Callable[..., Any]:
        if not made.state:
            return call

        def with_state(*inputs: Any, **named: Any) -> dict[str, Any]:
            result, state = call(*inputs, **named)
            return {"result": result, "state": state}

        return with_state

    def _build(self, value: Any, parameter: str, path: str) -> Any:
        kind = type(value)
        if kind is TensorSpec:
            return self._tensor(value, parameter, path)
        if kind in PLAIN:
            return value
        if kind is list or kind is tuple:
            if PLAIN.issuperset(map(type, value)):
                return value[:]
            return kind(self._build(part, parameter, f"{path}[{i}]") for i, part in enumerate(value))
        if kind is DtypeName:
            return self.framework.dtypes.get(value) or refuse(f"this build has no dtype {value}")
        if kind is PlaceName:
            return self.framework.place(value)
        if kind is slice:
            return slice(*(self._build(p, parameter, path) for p in (value.start, value.stop, value.step)))
        return value

    def _tensor(self, spec: TensorSpec, parameter: str, path: str, tensor: Any = None) -> Any:
        """The tensor of the case, or of the layer, filled; of a strided one the elements lie apart."""
        framework, dtype = self.framework, spec.dtype
        if dtype not in framework.dtypes:
            refuse(f"this build has no dtype {dtype}")
        size = spec.size
        self.elements += size
        fill = fill_of(self.entry, parameter, self.named, spec, self.job.values, self.rules)
        if tensor is not None:  # a layer's parameter stays where the layer has it
            if not self._left_unfilled(spec, size, fill):
                self._fill(spec, size, tensor, parameter, fill)
        elif size < LARGE_INPUT:
            tensor = framework.empty(spec.shape, dtype)
            self._fill(spec, size, tensor, parameter, fill)
            tensor = self._as_asked(tensor, spec, fill)
        else:
            tensor = self._as_asked(self._large(spec, size, parameter, fill), spec, fill)
        if spec.strides:
            if spec.overlaps():
                refuse("strides by which elements share memory")
            self.kept.append(tensor)
            tensor = framework.strided(tensor, spec)
        wanted = self._grad_wanted and not self.forward_only and parameter not in RESULT_PLACES
        if wanted and dtype in DIFFERENTIABLE:
            framework.want_gradient(tensor)
            self.wanted.append((path, tensor))
            self.largest = max(self.largest, size)
        if self.dump is not None:
            self.inputs.append((path, tensor))
        layout = self.entry.layouts.get(parameter) if self.entry is not None else None
        return tensor if layout is None else self._sparse(tensor, spec, layout)

    def _fill(self, spec: TensorSpec, size: int, tensor: Any, parameter: str, fill: Any) -> None:
        """Gives the tensor its values."""
        pointer, code = self.framework.pointer(tensor) if size else 0, CODES[spec.dtype]
        if fill is None:
            self.native.fill(spec.index, pointer, size, code)
        elif isinstance(fill, Literal):
            values = array("d", fill.values)
            if len(values) != size:
                refuse(f"{parameter}: {len(values)} values for a tensor of {size}")
            self.native.fill_literal(spec.index, pointer, size, code, values.tobytes())
        else:
            self.native.fill(spec.index, pointer, size, code, *fill)

    def _large(self, spec: TensorSpec, size: int, parameter: str, fill: Any) -> Any:
        """A tensor of LARGE_INPUT elements and more: unfilled, shared, or as any other."""
        if self._left_unfilled(spec, size, fill):
            return self._room(spec.shape, spec.dtype)
        tensor = self._shared(spec, fill)
        if tensor is None:
            tensor = self._room(spec.shape, spec.dtype)
            self._fill(spec, size, tensor, parameter, fill)
        return tensor

    def _left_unfilled(self, spec: TensorSpec, size: int, fill: Any) -> bool:
        return self.unfilled and size >= LARGE_INPUT and spec.dtype in FLOATING and is_free(fill)

    def _shared(self, spec: TensorSpec, fill: Any) -> Any:
        """A large tensor, filled, in memory that it has in common with the slot's other lanes; None where
        there is none, or the tensor is there to be written."""
        if not self._can_share() or spec.strides or isinstance(fill, Literal):
            return None
        if spec.index in self._promised():
            return None
        made = self.native.fill_shared(spec.index, spec.shape, CODES[spec.dtype], *(fill or ()))
        return self._adopted(made, spec.dtype)

    def _can_share(self) -> bool:
        """Whether large tensors may lie where the slot's other lanes have them too."""
        return hasattr(self.framework, "adopt") and not self.functions.execution.timed

    def _adopted(self, made: tuple[Any, int] | None, dtype: str) -> Any:
        """The framework's tensor of what native has made in shared memory, if it has; else None."""
        if made is None:
            return None
        capsule, pointer = made
        try:
            tensor = self.framework.adopt(capsule)
        except Exception:  # a type that this version does not take: it is filled in memory of its own
            return None
        same = self.framework.pointer(tensor) == pointer
        return tensor if same and self.framework.tensor_dtype(tensor) == dtype else None

    def _room(self, shape: Any, dtype: str) -> Any:
        """A large tensor that is filled at once, or shall not be touched."""
        self.native.scramble(False)
        try:
            return self.framework.empty(shape, dtype)
        finally:
            self.native.scramble(True)

    def _sparse(self, tensor: Any, spec: TensorSpec, layout: Any) -> Any:
        """The sparse tensor that holds some places of this one, which it is differentiated by."""
        layout = ask(layout, self.named, spec) if callable(layout) else layout
        if layout is None:
            return tensor
        if isinstance(layout, tuple):  # with the places of another of the case's tensors
            layout, index = layout
            spec = spec._replace(index=index)
        self.kept.append(tensor)  # its memory is looked at again after the call
        return self.framework.sparse(tensor, spec, layout)

    def _as_asked(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        """The tensor as the regime wants it."""
        if self.job.values != "layout" or self.job.lane.reference_functions or spec.size < 2 or spec.strides:
            return tensor
        if spec.index in self._promised():  # what is written has to be where it is read again
            return tensor
        return self.framework.as_layout(tensor, spec.index)

    # -- the call --

    def _forward(self, function: Callable[..., Any], args: list[Any], kwargs: Any) -> Any:
        changes = self.entry.changes if self.entry is not None else ""
        if self.job.lane.reference_functions or not changes:
            return function(*args, **kwargs)
        # In place: the result is what that argument holds afterwards.
        if changes in kwargs:
            changed = kwargs[changes] = self._writable(kwargs[changes])
        else:
            position = self.entry.parameters.index(changes)
            changed = args[position] = self._writable(args[position])
        returned = function(*args, **kwargs)
        if not self.functions.execution.in_place:
            return changed if returned is None else returned
        tensor_type = self.framework.tensor_type
        if isinstance(returned, tensor_type) and returned is not changed:
            if self.framework.pointer(returned) != self.framework.pointer(changed):
                return {"changed": changed, "returned": returned}
        return changed

    def _writable(self, value: Any) -> Any:
        if isinstance(value, SEQUENCE):
            return [self._writable(part) for part in value]
        if not isinstance(value, self.framework.tensor_type) or not self.wanted:
            return value
        return self.framework.writable(value)

    def _backward(self, leaves: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Gradients of the wanted inputs, under an upstream gradient that is the same in both lanes.

        Through an output that is drawn from two values they are drawn from the gradients of both."""
        if not self.wanted:
            return []
        framework = self.framework
        outputs, upstream, laws, others = self._through(leaves)
        if not outputs:
            return []
        wanted = [tensor for _, tensor in self.wanted]
        self._enter("backward")
        found = framework.gradients(outputs, wanted, upstream)
        if laws:
            ends = self._of_others(others, wanted)
            found = [drawn_gradient(laws[0], *pair) for pair in zip(found, ends, strict=True)]
        return [(name, value) for (name, _), value in zip(self.wanted, found, strict=True)]

    def _through(
        self, leaves: list[tuple[str, Any]]
    ) -> tuple[list[Any], list[Any], list[Law], list[tuple[Any, Any]]]:
        """What gradients go through: outputs, their upstream gradients, laws among them, and what stands in
        the place of values that were not kept, each with its upstream gradient."""
        framework = self.framework
        outputs, upstream, laws, others = [], [], [], []
        for position, (_, value) in enumerate(leaves):
            law = None
            if isinstance(value, Law) and value.kind in ("kept", "either"):
                law = value
                laws.append(law)
                value = law.parameters[0]
            if not isinstance(value, framework.tensor_type) or not framework.differentiable(value):
                continue
            dtype = framework.tensor_dtype(value)
            if dtype not in DIFFERENTIABLE:
                continue
            gradient = self._upstream(position, framework.shape(value), dtype)
            outputs.append(value)
            upstream.append(gradient)
            if law is None:
                continue
            for other in law.parameters[1:-2]:
                if isinstance(other, framework.tensor_type) and framework.differentiable(other):
                    others.append((other, gradient))
        return outputs, upstream, laws, others

    def _upstream(self, position: int, shape: Any, dtype: str) -> Any:
        """The upstream gradient of the output at this position."""
        self.upstream_dtypes[position] = dtype
        count = count_of(shape)
        framework = self.framework
        reach = upstream_reach(dtype, count, self.largest)
        if count < LARGE_INPUT:
            gradient = framework.empty(shape, dtype)
        elif (gradient := self._upstream_shared(position, shape, dtype, reach)) is not None:
            return gradient
        else:
            gradient = self._room(shape, dtype)
        pointer = framework.pointer(gradient) if count else 0
        self.native.fill_upstream(position, pointer, count, CODES[dtype], reach)
        return gradient

    def _upstream_shared(self, position: int, shape: Any, dtype: str, reach: float) -> Any:
        """It in memory that it has in common with the slot's other lanes; None where there is none."""
        if not self._can_share():
            return None
        made = self.native.fill_upstream_shared(position, tuple(shape), CODES[dtype], reach)
        return self._adopted(made, dtype)

    def _of_others(self, others: list[tuple[Any, Any]], wanted: list[Any]) -> list[Any]:
        """Gradients through what stands in the place of values that were not kept."""
        if not others:
            return [None] * len(wanted)
        values, upstream = zip(*others, strict=True)
        return self.framework.gradients(list(values), wanted, list(upstream))


def names_of(parameters: Sequence[str], args: Any) -> Sequence[str]:
    """The parameters' names of positional arguments; those beyond them have numbers."""
    if len(args) <= len(parameters):
        return parameters[: len(args)]
    return [parameters[i] if i < len(parameters) else f"arg{i}" for i in range(len(args))]


def is_large(spec: TensorSpec) -> bool:
    return spec.size >= LARGE_INPUT


def upstream_reach(dtype: str, count: int, inputs: int) -> float:
    """How far upstream gradients reach from 0: faults of a gradient shall stand above the absolute tolerance.

    A mean of n elements has gradients of 1/n: the fewer elements an output has for those of the inputs, the
    larger they are made, by a power of two. Half precision has neither the range nor the digits for that, and
    in running sums of many elements rounding errors would stand out as well."""
    if dtype in ("float16", "bfloat16") or count > 1 << 16:
        return 0.5
    return UPSTREAM * 2 ** min(16, max(0, (inputs // max(1, count)).bit_length() - 1))


def drawn_gradient(law: Law, kept: Any, other: Any) -> Law | None:
    """The gradient through an output that follows `kept` or `either`: drawn from that of its values and that
    of what stands in their place; None is a gradient of nothing."""
    share, groups = law.parameters[-2:]
    some = other if kept is None else kept
    if some is None:
        return None
    if other is None:
        return Law("kept", (kept, share, groups), tuple(some.shape), some.dtype)
    first = 0.0 if kept is None else kept
    return Law("either", (first, other, share, groups), tuple(some.shape), some.dtype)
