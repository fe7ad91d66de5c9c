"""A lane: runs one case after another in one framework and hands over what came out.

For each case it makes the tensors and fills them from the counter, calls the API (or, in the
reference lane, the function that the API tables give for it), differentiates, copies the results
into the arena and replies. Comparison is not its business.
"""

import os
import time
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.frameworks import Dense, Framework
from assay.laws import Law
from assay.registry import DUNDERS, REGISTRY, Api
from assay.results import Numbers, flatten
from assay.rules import Literal, ask, resolve
from assay.spec import COMPLEX, FLOATING, DtypeName, TensorSpec

# In the order of DType in src/case/dtype.h; the position is the code on the wire.
DTYPES = (
    "bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 uint16 uint32 uint64"
).split()
CODES = {name: code for code, name in enumerate(DTYPES)}
DIFFERENTIABLE = (FLOATING | COMPLEX) - {"float8_e4m3fn", "float8_e5m2"}

# Status, LeafKind and Equality of src/wire/messages.fbs.
OK, RAISED, NO_KERNEL, OUT_OF_MEMORY, UNSUPPORTED, SKIPPED, REFUSED = range(7)
TENSOR, INTEGER, FLOAT, COMPLEX_NUMBER, BOOLEAN, TEXT, NONE, LAW, DTYPE, OPAQUE = range(10)
EQUALITY_CODES = {"value": 0, "sign": 1, "sorted": 2, "shape": 3}

# What a case's time is spent on, in the order of the wire: making and filling tensors, the call, the
# results' way into the arena, differentiation.
STAGES = ("build", "forward", "copy", "backward")
# Wall time, because asking for CPU time takes 2 µs; benchmarks want it all the same.
CLOCK = time.process_time_ns if os.environ.get("ASSAY_STAGE_CLOCK") == "cpu" else time.perf_counter_ns

MAX_MESSAGE = 4000
MOST_LEAVES = 1 << 14

# Where functions of tensors live, below the framework's root; see callable_name().
NAMESPACES = frozenset(
    [
        "",
        *(
            "Tensor nn.functional nn.utils nn.quant linalg fft signal sparse sparse.nn.functional geometric "
            "vision.ops incubate incubate.nn.functional autograd audio.functional text metric strings special"
        ).split(),
    ]
)
NO_FUNCTION_OF_TENSORS = frozenset(
    "load save async_save clear_async_save_task_queue read_file from_dlpack to_dlpack batch summary flops "
    "new_init original_init apply register_hook seed manual_seed".split()
)
CHANGES_THE_LANE = ("set_", "enable_", "disable_", "monkey_patch_")


class Leaf(NamedTuple):
    """One leaf of a result, as the native module puts it on the wire."""

    path: str
    kind: int
    dtype: int = 0
    shape: tuple[int, ...] = ()
    offset: int = 0
    value: Any = None
    equality: int = 0
    parameters: tuple[Any, ...] = ()
    lent: bool = False  # `offset` is an address in this process


class Job(NamedTuple):
    """One case, parsed by the native module: tensors are TensorSpec, dtypes DtypeName."""

    api: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: int
    backward: bool
    reference: bool
    known_only: bool
    seed: int


class Stop(Exception):
    """Ends a case with a status of its own instead of a result."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Lane:
    """Serves the channel that `native` has open, in `framework`."""

    def __init__(self, framework: Framework, native: Any) -> None:
        self.framework = framework
        self.native = native
        self.functions: dict[str, Callable[..., Any]] = {}
        self.lent: list[Dense] = []  # what the slot reads where it is

    def serve(self) -> None:
        """Runs cases until the slot closes the channel."""
        while (job := self.native.next()) is not None:
            self.lent.clear()
            self._run(Job(*job))

    def _run(self, job: Job) -> None:
        call = Call(self, job)
        status, phase, message = OK, "", ""
        try:
            call.run()
        except Exception as error:
            status, phase, message = self._status(error), call.phase, describe_error(error)
            error.__traceback__ = None
        results = call.outputs, call.gradients, call.differentiable
        try:
            self.native.reply(status, phase, message, *results, call.durations())
        except Exception as error:  # a result that no reply can hold, such as text that is no UTF-8
            self.native.reply(RAISED, "copy", describe_error(error), [], [], False, call.durations())

    def _status(self, error: Exception) -> int:
        if isinstance(error, Stop):
            return error.status
        if self.framework.out_of_memory(error):
            return OUT_OF_MEMORY
        return NO_KERNEL if self.framework.no_kernel(error) else RAISED

    def function(self, job: Job, entry: Api | None) -> Callable[..., Any]:
        """What stands for the case's API in this lane."""
        if job.reference:
            if entry is None:
                raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
            return entry.call
        found = self.functions.get(job.api)
        if found is None:
            if entry is None:
                callable_name(job.api)
            found = self.functions[job.api] = self.framework.resolve(public_name(job.api))
        return found


class Call:
    """One case on its way through the lane; `phase` says where it is when something raises."""

    def __init__(self, lane: Lane, job: Job) -> None:
        self.lane = lane
        self.framework = lane.framework
        self.native = lane.native
        self.job = job
        self.entry = REGISTRY.get(job.api)
        self.named: dict[str, Any] = {}
        self.wanted: list[tuple[str, Any]] = []  # inputs that are differentiated, by name
        self.largest = 0  # elements of the largest of them
        self.phase = self.stage = "build"
        self.spent = dict.fromkeys(STAGES, 0)  # nanoseconds
        self.entered_at = CLOCK()
        self.outputs: list[Leaf] = []
        self.gradients: list[Leaf] = []
        self.differentiable = False

    def run(self) -> None:
        """Fills `outputs` and `gradients`; those of a call that cannot be differentiated are kept."""
        job, entry = self.job, self.entry
        if entry is None and job.known_only:
            raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
        if entry is not None and entry.skip:
            raise Stop(SKIPPED, entry.skip)
        function = self.lane.function(job, entry)
        self.framework.seed(job.seed)
        args, kwargs = self._arguments()
        self._enter("forward")
        results = self._forward(function, args, kwargs)
        self._enter("copy")
        leaves = list(flatten(results, "", self.framework.tensor_type))
        if len(leaves) > MOST_LEAVES:
            raise Stop(UNSUPPORTED, f"a result of {len(leaves)} parts; assay compares {MOST_LEAVES}")
        equal = entry.equal if entry is not None else ()
        self.outputs = [
            self._leaf(path, value, equal[min(position, len(equal) - 1)] if equal else "value")
            for position, (path, value) in enumerate(leaves)
        ]
        self._enter("backward", stage="build")
        gradients = self._backward(leaves)
        self._enter("backward", stage="copy")
        self.differentiable = bool(gradients)
        self.gradients = [self._leaf(name, value, "value") for name, value in gradients]

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

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        job = self.job
        parameters = self.entry.parameters if self.entry is not None else ()
        names = [parameters[i] if i < len(parameters) else f"arg{i}" for i in range(len(job.args))]
        self.named = dict(zip(names, job.args, strict=True))
        self.named.update(job.kwargs)
        grad = self.entry.grad if self.entry is not None else True
        self._grad_wanted = ask(grad, self.named, None) if callable(grad) else grad
        args = [self._build(value, name, name) for name, value in zip(names, job.args, strict=True)]
        kwargs = {name: self._build(value, name, name) for name, value in job.kwargs.items()}
        return args, kwargs

    def _build(self, value: Any, parameter: str, path: str) -> Any:
        kind = type(value)
        if kind is TensorSpec:
            return self._tensor(value, parameter, path)
        if kind is list or kind is tuple:
            return kind(self._build(part, parameter, f"{path}[{i}]") for i, part in enumerate(value))
        if kind is DtypeName:
            return self.framework.dtypes.get(value) or refuse(f"this build has no dtype {value}")
        if kind is slice:
            return slice(*(self._build(p, parameter, path) for p in (value.start, value.stop, value.step)))
        return value

    def _tensor(self, spec: TensorSpec, parameter: str, path: str) -> Any:
        if spec.dtype not in self.framework.dtypes:
            refuse(f"this build has no dtype {spec.dtype}")
        tensor = self.framework.empty(spec.shape, spec.dtype)
        pointer = self.framework.pointer(tensor) if spec.size else 0
        code = CODES[spec.dtype]
        rule = self.entry.rules.get(parameter) if self.entry is not None else None
        fill = resolve(rule, self.named, spec) if rule is not None else None
        if fill is None:
            self.native.fill(spec.index, pointer, spec.size, code)
        elif isinstance(fill, Literal):
            values = array("d", fill.values)
            if len(values) != spec.size:
                refuse(f"{parameter}: {len(values)} values for a tensor of {spec.size}")
            self.native.fill_literal(spec.index, pointer, spec.size, code, values.tobytes())
        else:
            self.native.fill(spec.index, pointer, spec.size, code, *fill)
        if self.job.backward and self._grad_wanted and spec.dtype in DIFFERENTIABLE:
            self.framework.want_gradient(tensor)
            self.wanted.append((path, tensor))
            self.largest = max(self.largest, spec.size)
        return tensor

    # -- the call --

    def _forward(self, function: Callable[..., Any], args: list[Any], kwargs: Any) -> Any:
        changes = self.entry.changes if self.entry is not None else ""
        if self.job.reference or not changes:
            return function(*args, **kwargs)
        # In place: the result is what that argument holds afterwards.
        if changes in kwargs:
            changed = kwargs[changes] = self._writable(kwargs[changes])
        else:
            position = self.entry.parameters.index(changes)
            changed = args[position] = self._writable(args[position])
        returned = function(*args, **kwargs)
        tensor_type = self.framework.tensor_type
        if isinstance(returned, tensor_type) and returned is not changed:
            if self.framework.pointer(returned) != self.framework.pointer(changed):
                return {"changed": changed, "returned": returned}
        return changed

    def _writable(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
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
        outputs, upstream, laws, others = [], [], [], []
        for position, (_, value) in enumerate(leaves):
            law = value if isinstance(value, Law) and value.kind in ("kept", "either") else None
            if law is not None:
                laws.append(law)
                value = law.parameters[0]
            if not isinstance(value, framework.tensor_type) or not framework.differentiable(value):
                continue
            dtype = framework.tensor_dtype(value)
            if dtype not in DIFFERENTIABLE:
                continue
            shape = framework.shape(value)
            gradient = framework.empty(shape, dtype)
            count = count_of(shape)
            reach = upstream_reach(dtype, count, self.largest)
            pointer = framework.pointer(gradient) if count else 0
            self.native.fill_upstream(position, pointer, count, CODES[dtype], reach)
            outputs.append(value)
            upstream.append(gradient)
            for other in law.parameters[1:-2] if law is not None else ():
                if isinstance(other, framework.tensor_type) and framework.differentiable(other):
                    others.append((other, gradient))
        if not outputs:
            return []
        wanted = [tensor for _, tensor in self.wanted]
        self._enter("backward")
        found = framework.gradients(outputs, wanted, upstream)
        if laws:
            ends = self._of_others(others, wanted)
            found = [drawn_gradient(laws[0], *pair) for pair in zip(found, ends, strict=True)]
        return [(name, value) for (name, _), value in zip(self.wanted, found, strict=True)]

    def _of_others(self, others: list[tuple[Any, Any]], wanted: list[Any]) -> list[Any]:
        """Gradients through what stands in the place of values that were not kept."""
        if not others:
            return [None] * len(wanted)
        values, upstream = zip(*others, strict=True)
        return self.framework.gradients(list(values), wanted, list(upstream))

    # -- handing over --

    def _leaf(self, path: str, value: Any, equality: str) -> Leaf:
        equal = EQUALITY_CODES[equality]
        if isinstance(value, self.framework.tensor_type):
            dense = self.framework.dense(value)
            code = CODES[dense.dtype]
            lent = self.native.lend(dense.pointer, dense.count, code)
            if lent:
                self.lane.lent.append(dense)
                offset = dense.pointer
            else:
                offset = self.native.hand_over(dense.pointer, dense.count, code)
            return Leaf(path, TENSOR, code, tuple(dense.shape), offset, None, equal, (), lent)
        if isinstance(value, Law):
            return self._law_leaf(path, value)
        if isinstance(value, Numbers):
            code, count = CODES[value.dtype], count_of(value.shape)
            offset = self.native.hand_over(value.values.buffer_info()[0], count, code)
            return Leaf(path, TENSOR, code, value.shape, offset, None, equal)
        if value is None:
            return Leaf(path, NONE)
        if isinstance(value, bool):
            return Leaf(path, BOOLEAN, value=value)
        if isinstance(value, int):
            return Leaf(path, INTEGER, value=str(value))
        if isinstance(value, float):
            return Leaf(path, FLOAT, value=value)
        if isinstance(value, complex):
            return Leaf(path, COMPLEX_NUMBER, value=value)
        if isinstance(value, str):
            return Leaf(path, TEXT, value=value)
        if name := self.framework.dtype_name(value):
            return Leaf(path, DTYPE, value=name)
        return self._foreign_leaf(path, value, equal)

    def _foreign_leaf(self, path: str, value: Any, equality: int) -> Leaf:
        """NumPy arrays as tensors, NumPy numbers as numbers; of anything else only the type's name."""
        if hasattr(value, "__array_interface__") and str(value.dtype) in CODES:
            if not value.shape:
                return self._leaf(path, value.item(), "value")
            array = value if value.flags["C_CONTIGUOUS"] else value.copy(order="C")
            code = CODES[str(array.dtype)]
            offset = self.native.hand_over(array.ctypes.data, array.size, code)
            return Leaf(path, TENSOR, code, tuple(array.shape), offset, None, equality)
        return Leaf(path, OPAQUE, value=type(value).__name__)

    def _law_leaf(self, path: str, law: Law) -> Leaf:
        parameters = []
        for parameter in law.parameters:
            if isinstance(parameter, self.framework.tensor_type):
                dense = self.framework.dense(parameter)
                code = CODES[dense.dtype]
                parameters.append(
                    (code, self.native.hand_over(dense.pointer, dense.count, code), dense.count)
                )
            else:
                if isinstance(parameter, complex):
                    raise Stop(UNSUPPORTED, f"the law {law.kind} has no complex parameters")
                parameters.append(float(parameter))
        name = self.framework.dtype_name(law.dtype) or refuse(f"a law of dtype {law.dtype}")
        shape = tuple(int(extent) for extent in law.shape)
        return Leaf(path, LAW, CODES[name], shape, 0, law.kind, 0, tuple(parameters))


def upstream_reach(dtype: str, count: int, inputs: int) -> float:
    """How far upstream gradients reach from 0: faults of a gradient shall stand above the absolute tolerance.

    A mean of n elements has gradients of 1/n: the fewer elements an output has for those of the inputs, the
    larger they are made, by a power of two. Half precision has neither the range nor the digits for that, and
    in running sums of many elements rounding errors would stand out as well."""
    if dtype in ("float16", "bfloat16") or count > 1 << 16:
        return 0.5
    return 4.0 * 2 ** min(16, max(0, (inputs // max(1, count)).bit_length() - 1))


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


def public_name(api: str) -> str:
    """The name itself, if it names something public; private names are never looked up."""
    for part in api.split(".")[1:]:
        if part.startswith("_") and part not in DUNDERS:
            refuse(f"{api}: {part} is private to the framework")
    return api


def callable_name(api: str) -> str:
    """The name itself, if a case may call it although no table knows it.

    Frameworks also have public functions that run commands (paddle.utils, paddle.amp.core), load
    code (hub, utils.cpp_extension), or read and write files; text from outside reaches none of them.
    """
    namespace, _, function = api.partition(".")[2].rpartition(".")
    if namespace not in NAMESPACES:
        refuse(f"{api}: a case may call functions of tensors, and {namespace} is no namespace of those")
    if function in NO_FUNCTION_OF_TENSORS or function.startswith(CHANGES_THE_LANE):
        refuse(f"{api}: {function} is no function of tensors")
    return api


def refuse(message: str) -> Any:
    raise Stop(REFUSED, message)


def count_of(shape: Any) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def describe_error(error: Exception) -> str:
    """One text for people: the type, and the part of the message that says what is wrong."""
    if isinstance(error, Stop):
        return str(error)
    message = str(error)
    # Paddle puts a trace of C++ frames before the summary.
    message = message.rsplit("Error Message Summary:", 1)[-1].strip("- \n")
    if error.__cause__ is not None:
        message += f" (from {type(error.__cause__).__name__}: {error.__cause__})"
    message = message.encode(errors="replace").decode()  # bytes that are no UTF-8 may stand in it
    return f"{type(error).__name__}: {message}"[:MAX_MESSAGE]
