"""Times a case, one turn after another.

The slot sends the same case for every turn, alternating between its lanes, until it has enough samples. The
inputs stay between turns. A turn returns clock samples instead of results: a leaf of nanoseconds per call for
each part of the case (forward, backward), clock (host, device) and state of the caches:

    "forward host warm"   the call, with its inputs in the caches where the previous call left them
    "forward host cold"   one call, with its inputs in no cache (on a CPU in the first turn only)
    "backward …"          the gradients; each needs a forward call, which is not timed

On a GPU, the host's clock measures how long the framework takes to launch its work. The device's clock
measures how long the work takes, between two events of the default stream. If calls are short, a sample has
several calls (the leaf's `terms`), because the clock's resolution is limited. Samples in which the kernel ran
another process are dropped if enough others remain.
"""

import gc
import math
import resource
import secrets
import time
from array import array
from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

from assay.call import Call
from assay.inputs import Context
from assay.results import flatten
from assay.shared import LEAF_TENSOR, STAGES
from assay.variant import Variant
from assay.wire import CODES, Job, Leaf, count_of

CLOCK = time.perf_counter_ns

LEAST_SAMPLE = 100_000  # ns on a CPU; on a GPU the host must finish before the device starts
LEAST_SAMPLE_ON_DEVICE = 50_000
# ns for the warm samples of one part in a turn. On a CPU turns are short, so that a slow phase of the machine
# affects both lanes.
TURN = 1_000_000
TURN_ON_DEVICE = 5_000_000
MOST_CALLS = 64  # in a sample
MOST_SAMPLES = 25  # in a turn
LONG = 50_000_000  # ns; a longer call warms its own caches
SEVERAL_UP_TO = 1 << 20  # elements; samples of larger cases have one call
# More than any GPU's second-level cache. (On a CPU only the inputs are evicted.)
FLUSHED_ELEMENTS = 1 << 26
# Flushes keep the device busy for this multiple of the time that the host needs to launch the timed calls.
BUSY = 2.0
MOST_FLUSHES = 64
# Bytes that a lane on a CPU touches first, so that its allocations are on huge pages if there are any.
SETTLED = 16 << 20
HUGE_PAGE = 2 << 20
PARTS = ("forward", "backward")  # in the order of Job.calls
NO_TENSOR = 1 << 30  # tells the native module that a tensor is not one of the case


class Part(NamedTuple):
    """A timed part. `prepare` prepares a number of calls and is not timed; `run` makes them."""

    name: str
    prepare: Callable[[int], list[Any]]
    run: Callable[[list[Any]], None]


class Sample(NamedTuple):
    """One measurement of one or more calls."""

    nanoseconds: float  # of all its calls, by the host's clock
    events: Any  # the device's events before and after the calls; None on a CPU
    interrupted: bool  # the kernel ran another process in between


class Kept(Variant):
    """An evaluation whose inputs and upstream gradients stay for all turns."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []  # inputs
        self.upstreams: dict[int, Any] = {}  # upstream gradients, by the output's position

    def tensor(self, tensor: Any, spec: Any, fill: Any) -> Any:
        self.tensors.append(tensor)
        return tensor

    def upstream(self, position: int, dtype: str, make: Callable[[str], Any]) -> Any:
        if position not in self.upstreams:
            self.upstreams[position] = make(dtype)
        return self.upstreams[position]


class Timed(Call):
    """A timed case. Each turn is a call of run()."""

    turns = 0

    def __init__(self, context: Context, job: Job) -> None:
        self.kept = Kept()
        super().__init__(context, job, self.kept)

    def run(self) -> None:
        """Takes one turn and sets `outputs` to its samples. The first turn also prepares the case."""
        self.outputs = []
        if not self.turns:
            self.spent = (0,) * len(STAGES)  # nanoseconds in all turns
            self.calls: dict[str, int] = {}  # in a sample of each part
            self.samples: dict[str, int] = {}  # in a turn
            self.long: set[str] = set()  # parts with calls longer than LONG
            self.flushes: dict[str, int] = {}  # before each sample of a part, on a device
            # The device's clock; None if there is only the host's.
            self.device = getattr(self.framework, "stopwatch", lambda: None)()
            if self.device is None:
                self._settle()
            super().run()
        self.turns += 1
        self._enter("forward")
        collects = gc.isenabled()
        gc.disable()
        try:
            self._take_turn()
        finally:
            if collects:
                gc.enable()

    def times(self) -> tuple[int, ...]:
        """Ends the turn and returns the nanoseconds of all turns in each of STAGES."""
        self.spent = tuple(map(add, self.spent, super().times()))
        return self.spent

    def evaluate(self, function: Callable[..., Any]) -> None:
        """Prepares the case and runs it once, so that the extra work of a first call is not timed."""
        self.function, self.args, self.kwargs = self._ready(function)
        self.flushed: Any = None
        self._enter("forward")
        found = self._through(self._leaves_of(*self._arguments_again()))
        self.backward = bool(self.inputs.wanted and found[0])
        if self.backward:
            self._enter("backward")
            self.framework.gradients(found[0], self._wanted(), found[1])
        self._wait()

    def _settle(self) -> None:
        """Randomizes the position of this lane's memory on its pages.

        Otherwise all lanes of a server would have the same position, which makes a build fast or slow in each
        of its lanes: on 4 KiB pages a call may take twice as long."""
        touched = bytearray(SETTLED)
        del touched  # the heap keeps its pages
        self.before = [bytearray(secrets.randbelow(HUGE_PAGE))]
        self.before += [bytearray(secrets.randbelow(4096)) for _ in range(secrets.randbelow(64))]

    def _take_turn(self) -> None:
        self._time(Part("forward", self._prepare_forward, self._run_forward))
        if self.backward:
            self._enter("backward")
            self._time(Part("backward", self._prepare_backward, self._run_backward))

    # -- the parts --

    def _arguments_again(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for one call, with a copy of an argument that the call changes."""
        changes = self.inputs.changes
        if not changes or self.refers:
            return self.args, self.kwargs
        copy = self._copy
        args = [
            copy(arg) if name == changes else arg
            for name, arg in zip(self.inputs.taken, self.args, strict=False)
        ]
        args += self.args[len(args) :]
        return args, {name: copy(arg) if name == changes else arg for name, arg in self.kwargs.items()}

    def _copy(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._copy(part) for part in value]
        return self.framework.writable(value) if isinstance(value, self.framework.tensor_type) else value

    def _prepare_forward(self, calls: int) -> list[Any]:
        return [self._arguments_again() for _ in range(calls)]

    def _run_forward(self, prepared: list[Any]) -> None:
        function = self.function
        for args, kwargs in prepared:
            function(*args, **kwargs)

    def _prepare_backward(self, calls: int) -> list[Any]:
        return [self._through(self._leaves_of(*self._arguments_again()))[:2] for _ in range(calls)]

    def _run_backward(self, prepared: list[Any]) -> None:
        gradients, inputs = self.framework.gradients, self._wanted()
        for outputs, upstream in prepared:
            gradients(outputs, inputs, upstream)

    def _wanted(self) -> list[Any]:
        return [tensor for _, tensor in self.inputs.wanted]

    def _leaves_of(self, args: list[Any], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        results = self._shown(self._forward(self.function, list(args), dict(kwargs)), args, kwargs)
        return flatten(results, "", self.framework.tensor_type, self.framework.sparse_parts)

    # -- the clock --

    def _time(self, part: Part) -> None:
        if part.name not in self.calls:
            latest = self._choose_sizes(part)
            if part.name in self.long and self.device is None:
                self._keep(part, "cold", 1, [latest])
                self._keep(part, "warm", 1, [latest])
                return
        if self.turns == 1 or self.device is not None:
            self._keep(part, "cold", 1, [self._sample(part, 1, self._cool)])
        calls = self.calls[part.name]
        if part.name not in self.long:
            self._sample(part, calls)  # warms up
        taken = [self._sample(part, calls) for _ in range(self.samples[part.name])]
        self._wait()
        alone = [sample for sample in taken if not sample.interrupted]
        self._keep(part, "warm", calls, alone if 2 * len(alone) >= len(taken) else taken)

    def _choose_sizes(self, part: Part) -> Sample:
        """Chooses calls per sample and samples per turn. Returns the latest sample of one call."""
        taken = []
        for _ in range(3):
            taken.append(self._sample(part, 1))
            if taken[-1].nanoseconds > LONG:
                self.long.add(part.name)
                break
        self._wait()
        on_device = self.device is not None
        once = max(1.0, min(sample.nanoseconds for sample in taken))
        several = self.inputs.elements <= SEVERAL_UP_TO
        least = LEAST_SAMPLE_ON_DEVICE if on_device else LEAST_SAMPLE
        chosen = min(MOST_CALLS, max(1, round(least / once))) if several else 1
        # The slot gives the same number to all its lanes.
        given = dict(zip(PARTS, self.job.calls, strict=False)).get(part.name)
        self.calls[part.name] = min(MOST_CALLS, given or chosen)
        if on_device:
            # One more call: _sample() launches one after the flushes, before the clock starts.
            busy = BUSY * once * (self.calls[part.name] + 1)
            self.flushes[part.name] = min(MOST_FLUSHES, max(1, math.ceil(busy / self._flush_time())))
        turn = TURN_ON_DEVICE if on_device else TURN
        self.samples[part.name] = min(MOST_SAMPLES, max(1, int(turn / (once * self.calls[part.name]))))
        return taken[-1]

    def _sample(self, part: Part, calls: int, before: Callable[[], None] | None = None) -> Sample:
        prepared = part.prepare(calls)
        if before is not None:
            before()
        elif self.device is not None:
            # Keeps the device busy until the host has launched the timed calls.
            for _ in range(self.flushes.get(part.name, 1)):
                self._flush()
            part.run(part.prepare(1))
        events = None
        switches = _switches()
        began = CLOCK()
        if self.device is not None:
            events = self.device.mark()
        part.run(prepared)
        if events is not None:
            events = events, self.device.mark()
        ended = CLOCK()
        return Sample(float(ended - began), events, _switches() != switches)

    def _cool(self) -> None:
        """Evicts the inputs and the upstream gradients from all caches."""
        if self.device is not None:
            self._flush()
            return
        framework = self.framework
        for tensor in (*self.kept.tensors, *self.kept.upstreams.values()):
            count = count_of(framework.shape(tensor))
            if count:
                self.native.evict(framework.pointer(tensor), count, CODES[framework.tensor_dtype(tensor)])

    def _flush(self) -> None:
        if self.flushed is None:
            self.flushed = self.framework.empty((FLUSHED_ELEMENTS,), "float32")
        self.native.fill(NO_TENSOR, self.framework.pointer(self.flushed), FLUSHED_ELEMENTS, CODES["float32"])

    def _flush_time(self) -> float:
        """The nanoseconds that one flush takes on the device."""
        begun = self.device.mark()
        self._flush()
        ended = self.device.mark()
        self._wait()
        return max(1.0, self.device.between(begun, ended))

    def _wait(self) -> None:
        if self.device is not None:
            self.device.wait()

    def _keep(self, part: Part, cache: str, calls: int, samples: list[Sample]) -> None:
        clocks = {"host": [sample.nanoseconds for sample in samples]}
        if self.device is not None:
            self._wait()
            clocks["device"] = [self.device.between(*sample.events) for sample in samples]
        for clock, times in clocks.items():
            values = array("d", [time / calls for time in times])
            code, path = CODES["float64"], f"{part.name} {clock} {cache}"
            offset = self.native.hand_over(values.buffer_info()[0], len(values), code)
            self.outputs.append(Leaf(path, LEAF_TENSOR, code, (len(values),), offset, terms=float(calls)))


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
