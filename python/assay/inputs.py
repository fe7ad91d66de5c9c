"""The inputs of a case's call: arguments by name, tensors made, filled and laid out as the case states."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from assay.dump import Dump
from assay.frameworks import Framework
from assay.handover import HandOver
from assay.layers import OPTIMIZER, STEPS, Made
from assay.observed import drawn, unusual, values_of
from assay.regimes import FORWARD_ONLY, OBSERVED, fill_of, is_free, is_narrow, specs_in
from assay.registry import Api
from assay.rules import Literal, Sample, ask
from assay.spec import FLOATING, RESULT_PLACES, DtypeName, PlaceName, TensorSpec
from assay.torch_cases.entries import Named, entry_of
from assay.variant import Variant
from assay.wire import CODES, DIFFERENTIABLE, UNSUPPORTED, Job, Stop, refuse

LARGE_INPUT = 1 << 20  # elements; smaller tensors reuse warm memory
# A case with this many input elements may need more memory than the machine has.
GIANT = 1 << 27
PLAIN = frozenset({int, float, bool, type(None)})  # values that are passed on unchanged


class Context(NamedTuple):
    """What all cases of a lane share. `functions` is what it calls (assay.call.Functions)."""

    framework: Framework
    native: Any
    functions: Any
    hand_over: HandOver


class CaseInputs:
    """The inputs of one case under a variant of its evaluation."""

    largest = 0  # elements of the largest differentiated input
    elements = 0  # of all inputs
    dump: Dump | None = None  # writes inputs and results to disk
    unfilled = False  # whether large inputs with free values stay unfilled

    def __init__(self, context: Context, job: Job, variant: Variant) -> None:
        self.framework, self.native, self.functions, _ = context
        self.job = job
        self.variant = variant
        self.entry = entry_of(job.api)
        self.named = Named()
        if self.entry is not None:
            self.named.aliases = self.entry.aliases
        self.refers = refers(job, self.entry)
        self.rules: Mapping[str, Any] = self.entry.rules if self.entry is not None else {}
        self.taken: tuple[str, ...] = ()  # the parameters of the called function
        self.tensors: dict[int, Any] = {}  # by index, while arguments are built
        self.kept: list[Any] = []  # filled tensors that are not arguments themselves
        self.wanted: list[tuple[str, Any]] = []  # differentiated inputs, by name
        self.dumped: list[tuple[str, Any]] = []
        forward_only = job.values in FORWARD_ONLY or not job.settings.backward or job.lane.no_gradients
        self.forward_only = forward_only or self._composed()
        self.observed = values_of(self.native, job)  # of its tensors, under the regime `observed`
        self.special = ""  # "nan" or "inf" if they may have these
        self.changes = ""  # the parameter that the call changes in place

    def _composed(self) -> bool:
        """Whether the gradient is PyTorch's composition in the call's own dtype, which may overflow."""
        if self.entry is None or not self.entry.own or self.job.values not in ("wide", "exact", OBSERVED):
            return False
        specs = specs_in((*self.job.args, *self.job.kwargs.values()))
        return self.job.values == "wide" or any(map(is_narrow, specs))

    def name_arguments(self) -> None:
        """All arguments by their parameters' names, including those that construct a layer."""
        job, entry = self.job, self.entry
        if job.construction is not None:
            self._names(entry.parameters, *job.construction)
        self.taken = () if entry is None else entry.inputs if entry.kind else entry.parameters
        self._names(self.taken, job.args, job.kwargs)
        if entry is not None:
            in_place = entry.own and self.named.get("inplace") is True
            self.changes = entry.changes or (entry.parameters[0] if in_place else "")
        if self.observed and entry is not None:
            self.special = unusual(entry, self.named, self.observed)
            self.forward_only = self.forward_only or bool(self.special)

    def _names(self, parameters: Any, args: Any, kwargs: Any) -> None:
        self.named |= zip(names_of(parameters, args), args, strict=True)
        self.named |= kwargs

    def construction(self) -> tuple[list[Any], dict[str, Any]] | None:
        """The constructor's arguments of the case's layer; its tensors are constants."""
        if self.job.construction is None:
            return None
        self._grad_wanted = False
        made = self._built(self.entry.parameters, *self.job.construction)
        return self.variant.arguments(self.entry.parameters, *made)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The call's arguments."""
        grad = self.entry.grad if self.entry is not None else True
        self._grad_wanted = ask(grad, self.named, None) if callable(grad) else grad is True
        if self.changes:
            # A call that overwrites a tensor that it also reads has no gradient: frameworks refuse it.
            changed = [spec.index for spec in specs_in([self.named.get(self.changes)])]
            all_of = [spec.index for spec in specs_in(self.named.values())]
            if any(all_of.count(index) > 1 for index in changed):
                self._grad_wanted = False
        return self._built(self.taken, self.job.args, self.job.kwargs)

    def _built(self, parameters: Any, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        build, names = self._build, names_of(parameters, args)
        positional = [build(value, name, name) for name, value in zip(names, args, strict=True)]
        return positional, {name: build(value, name, name) for name, value in kwargs.items()}

    def made(self, make: Callable[..., Any], args: list[Any], kwargs: Any) -> Callable[..., Any]:
        """The case's layer as a function; its parameters are filled and differentiated by. Raises Stop with
        UNSUPPORTED if the framework's layer has other parameters."""
        job, entry = self.job, self.entry
        made = entry.call(*args, **kwargs)
        call = made.call if self.refers else made.own
        if entry.kind == OPTIMIZER:
            if call is not None:
                return call
            return lambda *inputs: self.framework.optimized(make, args, kwargs, STEPS, *inputs)
        layer = None if call is not None else make(*args, **kwargs)
        found = {} if layer is None else self.framework.parameters(layer)
        self.rules = {**self.rules, **made.rules}
        of_case = self._grad_wanted
        parameters = {}
        for place, (name, shape) in enumerate(sorted(made.parameters.items())):
            if layer is not None and (name not in found or tuple(found[name].shape) != tuple(shape)):
                raise Stop(
                    UNSUPPORTED, f"the framework's layer has no parameter {name} of shape {list(shape)}"
                )
            self._grad_wanted = of_case and name not in (*made.state, *made.constants)
            spec = TensorSpec(tuple(shape), made.dtype, job.tensors + place)
            parameters[name] = self._tensor(spec, name, name, found.get(name))
        if left := set(found) - set(made.parameters):
            raise Stop(UNSUPPORTED, f"the reference lacks parameters of the layer: {', '.join(sorted(left))}")
        if layer is None:
            return self._with_state(partial(call, parameters), made)
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

        with_state.has_state = True  # type: ignore[attr-defined]
        return with_state

    def _build(self, value: Any, parameter: str, path: str) -> Any:
        kind = type(value)
        if kind is TensorSpec:
            if value.index not in self.tensors:
                self.tensors[value.index] = self._tensor(value, parameter, path)
            return self.tensors[value.index]
        if kind in PLAIN:
            return value
        if kind is list or kind is tuple:
            if PLAIN.issuperset(map(type, value)):
                return value[:]
            return kind(self._build(part, parameter, f"{path}[{i}]") for i, part in enumerate(value))
        if kind is DtypeName:
            value = self.variant.dtype(value)
            return self.framework.dtypes.get(value) or refuse(f"this build has no dtype {value}")
        if kind is PlaceName:
            return self.framework.place(value)
        if kind is str and parameter in ("memory_format", "layout"):
            return self.framework.memory_format(value)
        if kind is str:
            return self.variant.dtype(value)
        if kind is slice:
            return slice(*(self._build(p, parameter, path) for p in (value.start, value.stop, value.step)))
        return value

    def _tensor(self, spec: TensorSpec, parameter: str, path: str, tensor: Any = None) -> Any:
        """The filled tensor of the case, or of the layer (`tensor`), with the case's strides."""
        tensor = self._laid_out(spec, parameter, path, tensor)
        self.variant.built(tensor, spec, parameter, path)
        return tensor

    def _laid_out(self, spec: TensorSpec, parameter: str, path: str, tensor: Any) -> Any:
        framework, dtype = self.framework, spec.dtype
        if dtype not in framework.dtypes:
            refuse(f"this build has no dtype {dtype}")
        size = spec.size
        self.elements += size
        fill = fill_of(self.entry, parameter, self.named, spec, self.job.values, self.rules)
        if self.observed:
            fill = drawn(fill, spec, self.observed.get(spec.index), self.job.seed, self.special)
        if tensor is not None:  # a layer owns its parameters
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
                refuse("strides with overlapping elements are not supported")
            self.kept.append(tensor)
            tensor = framework.strided(tensor, spec)
        on_cpu = self.entry is not None and parameter in self.entry.on_cpu
        on_host, tensor = tensor, tensor.cpu() if on_cpu else framework.placed(tensor)
        if on_host is not tensor:
            self.kept.append(on_host)  # its memory is checked after the call
        wanted = self._grad_wanted and not self.forward_only and parameter not in RESULT_PLACES
        wanted = wanted and parameter not in self.undifferentiated()
        if wanted and dtype in DIFFERENTIABLE:
            framework.want_gradient(tensor)
            self.wanted.append((path, tensor))
            self.largest = max(self.largest, size)
        if self.dump is not None:
            self.dumped.append((path, tensor))
        layout = self.entry.layouts.get(parameter) if self.entry is not None else None
        return tensor if layout is None else self._sparse(tensor, spec, layout)

    def undifferentiated(self) -> set[str]:
        """The parameters that PyTorch is known not to differentiate in this case."""
        case, names = self.functions.undifferentiated
        return names if case == self.job.id else set()

    def _fill(self, spec: TensorSpec, size: int, tensor: Any, parameter: str, fill: Any) -> None:
        """Fills the tensor."""
        pointer, code = self.framework.pointer(tensor) if size else 0, CODES[spec.dtype]
        if fill is None:
            self.native.fill(spec.index, pointer, size, code)
        elif isinstance(fill, Literal | Sample):
            values = array("d", fill.values)
            if len(values) != size:
                refuse(f"{parameter}: the rule gives {len(values)} values for {size} elements")
            self.native.fill_literal(spec.index, pointer, size, code, values.tobytes())
        else:
            self.native.fill(spec.index, pointer, size, code, *fill)

    def _large(self, spec: TensorSpec, size: int, parameter: str, fill: Any) -> Any:
        """A tensor of at least LARGE_INPUT elements: unfilled, shared, or filled."""
        if self._left_unfilled(spec, size, fill):
            return self.room(spec.shape, spec.dtype)
        tensor = self._shared(spec, fill)
        if tensor is None:
            tensor = self.room(spec.shape, spec.dtype)
            self._fill(spec, size, tensor, parameter, fill)
        return tensor

    def _left_unfilled(self, spec: TensorSpec, size: int, fill: Any) -> bool:
        return self.unfilled and size >= LARGE_INPUT and spec.dtype in FLOATING and is_free(fill)

    def _shared(self, spec: TensorSpec, fill: Any) -> Any:
        """A filled large tensor in memory that the slot's lanes share. None if sharing is not possible, or if
        the call may change the tensor."""
        if not self.can_share() or spec.strides or isinstance(fill, Literal):
            return None
        if spec.index in self.promised():
            return None
        made = self.native.fill_shared(spec.index, spec.shape, CODES[spec.dtype], *(fill or ()))
        return self.adopted(made, spec.dtype)

    def can_share(self) -> bool:
        """Whether large tensors may be in memory that the slot's lanes share."""
        return hasattr(self.framework, "adopt") and not self.functions.execution.timed

    def adopted(self, made: tuple[Any, int] | None, dtype: str) -> Any:
        """The framework's tensor over shared memory; None if it does not accept it."""
        if made is None:
            return None
        capsule, pointer = made
        try:
            tensor = self.framework.adopt(capsule)
        except Exception:  # this version does not accept the dtype
            return None
        same = self.framework.pointer(tensor) == pointer
        return tensor if same and self.framework.tensor_dtype(tensor) == dtype else None

    def room(self, shape: Any, dtype: str) -> Any:
        """An uninitialised large tensor. Its memory is not scrambled."""
        self.native.scramble(False)
        try:
            return self.framework.empty(shape, dtype)
        finally:
            self.native.scramble(True)

    def _sparse(self, tensor: Any, spec: TensorSpec, layout: Any) -> Any:
        """The sparse tensor with some of the elements of a dense one, which is differentiated."""
        layout = ask(layout, self.named, spec) if callable(layout) else layout
        if layout is None:
            return tensor
        if isinstance(layout, tuple):  # with the indices of another tensor of the case
            layout, index = layout
            spec = spec._replace(index=index)
        self.kept.append(tensor)  # checked for changes after the call
        made = self.framework.sparse(tensor, spec, layout)
        return self.framework.sparse_tensor(made) if self.entry.own else made

    def _as_asked(self, tensor: Any, spec: TensorSpec, fill: Any) -> Any:
        """The tensor in the layout of the value regime, as the variant has it."""
        tensor = self.variant.tensor(tensor, spec, fill)
        if self.job.values != "layout" or self.refers or spec.size < 2 or spec.strides:
            return tensor
        if spec.index in self.promised():  # a changed tensor is read again at its address
            return tensor
        return self.framework.as_layout(tensor, spec.index)

    def updates(self) -> tuple[str, ...]:
        """The parameters that the call changes beside its result."""
        updates = self.entry.updates if self.entry is not None else ()
        return ask(updates, self.named, None) if callable(updates) else updates

    def promised(self) -> set[int]:
        """The numbers of the case's tensors that the call may change."""
        promised = [*RESULT_PLACES]
        if self.entry is not None:
            promised += [self.changes, *self.updates()]
        return {spec.index for name in promised for spec in specs_in([self.named.get(name)])}


def refers(job: Job, entry: Api | None) -> bool:
    """Whether the lane calls the API's reference instead of the framework's function. A name of the lane's
    own framework is called itself in a test lane, and wherever lanes must agree bit for bit."""
    own = entry is not None and entry.own and (job.lane.role == "test" or not job.settings.error_bar)
    return job.lane.reference_functions and not own


def only_itself(job: Job, entry: Api | None, replaced: Callable[[], bool]) -> bool:
    """Whether the reference lane computes nothing but what this test lane does. PyTorch's float64 is the
    truth of its own functions; nobody vouches for that of an operator that somebody has added, or for any
    if kernels of PyTorch are `replaced`."""
    return job.lane.twin and (entry is None or not entry.own or entry.unreferenced or replaced())


def names_of(parameters: Sequence[str], args: Any) -> Sequence[str]:
    """The parameters' names of positional arguments; surplus arguments have numbers."""
    if len(args) <= len(parameters):
        return parameters[: len(args)]
    return [parameters[i] if i < len(parameters) else f"arg{i}" for i in range(len(args))]


def is_large(spec: TensorSpec) -> bool:
    """Whether the tensor has at least LARGE_INPUT elements."""
    return spec.size >= LARGE_INPUT
