"""Marks the stages of each step in the process of a rank, for ``assay timeline record --watch``.

A step lasts from one ``optimizer.step()`` to the next. ``wait`` is the time in which the rank waits for
others: in collectives, and from the end of its own backward pass to the end of the gradients' reduction. On a
GPU the marks are events of its stream. They are read when they are over, so that nothing waits for the GPU.

Marks are taken in one of N steps. N grows until they cost less than ``BUDGET``.
"""

import atexit
import fcntl
import functools
import importlib
import json
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

STAGES = ("data", "forward", "backward", "wait", "optimizer")
DATA, FORWARD, BACKWARD, WAIT, OPTIMIZER = range(len(STAGES))
BUDGET = 0.001  # of the time
MOST = 50_000  # ns of work for a mark: one that lasts longer waits for a core, or for room in a GPU's queue
RATE = 200_000_000  # ns between measured steps, at least
PACE, PACED = 2_000_000_000, 16  # ns, or measured steps, between two choices of N
COLLECTIVES = (
    "all_reduce all_gather all_gather_into_tensor reduce_scatter reduce_scatter_tensor broadcast reduce "
    "gather scatter all_to_all all_to_all_single barrier monitored_barrier send recv batch_isend_irecv"
).split()
RANKS = ("RANK", "PADDLE_TRAINER_ID", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")

Function = Callable[..., Any]
# (the stage that ends, when on the host, the event of a GPU, and whether that one had come to the last mark)
Marks = list[tuple[int, int, Any, bool]]


def _rank() -> int | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdecimal()), None)


class StageFile:
    """The file of a rank (src/timeline/analysis/stage_watch.h). A killed process loses its last second."""

    def __init__(self, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self.clock = folder, clock
        self.pid = os.getpid()
        self.fd: int | None = None
        self.lines: list[str] = []
        self.written = clock()
        atexit.register(self.flush)

    def add(self, number: int, times: list[int], of_host: bool) -> None:
        """Adds a step: nanoseconds of its stages, and of data loading on the host; whether a GPU waited."""
        words = [str(number), *(str(max(0, each) // 1000) for each in times), *["host"] * of_host]
        self.lines.append(" ".join(words))
        if self.clock() - self.written >= 1:
            self.flush()

    def flush(self) -> None:
        """Writes what is kept; a forked process writes nothing."""
        self.written = self.clock()
        if not self.lines or os.getpid() != self.pid:
            return
        try:
            if self.fd is None:
                rank = _rank()
                name = f"pid{self.pid}.stages" if rank is None else f"rank{rank}.stages"
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
                self.fd = os.open(os.path.join(self.folder, name), flags, 0o644)
                fcntl.flock(self.fd, fcntl.LOCK_SH)  # until the process ends
                head = {"rank": rank, "host": socket.gethostname(), "pid": self.pid}
                self.lines.insert(0, f"assay-stages 2 {json.dumps(head)}")
            os.write(self.fd, ("\n".join(self.lines) + "\n").encode())
        except OSError as error:
            print(f"assay: process {self.pid} is no longer recorded: {error}", file=sys.stderr)
            self.pid = 0
        self.lines.clear()


class Stages:
    """The marks of a process. `assay.step` and `assay.job` call its methods assay_*."""

    def __init__(self, file: StageFile, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self.file, self.now = file, now
        self.number, self.every = 0, 1
        self.measuring = False  # in this step
        self.marks: Marks = []
        self.over: deque[tuple[int, Marks]] = deque()  # steps that the GPU may not have reached
        self.phase = FORWARD  # to which the time belongs until the next mark
        self.inside = False  # a wrapped function
        self.thread = 0
        self.cuda: Any = None  # torch.cuda, once it is in use
        self.events: list[Any] = []  # which are free
        self.stream: Any = None
        self.cost = 0  # ns that the marks of this step have taken
        self.costs: list[int] = []  # of the steps since the last choice of N
        self.since: tuple[int, int] | None = None  # number and time of the last choice
        self.leader: int | None = None  # the optimizer whose steps count
        self.others = 0  # steps of other optimizers since its last one
        self.jobs: list[str] = []
        self.explicit = False  # assay.step() marks the steps

    def mark(self, stage: int) -> None:
        """What has run since the last mark belongs to this stage."""
        if self.measuring:
            begin = self.now()
            last = self.marks[-1][2]
            idle = last is not None and last.query()
            self.marks.append((stage, begin, self._event(), idle))
            self.cost += min(MOST, self.now() - begin)

    def _event(self) -> Any:
        if self.cuda is None:
            return None
        if self.cuda.is_current_stream_capturing():
            self.measuring = False
            return None
        event = self.events.pop() if self.events else self.cuda.Event(enable_timing=True)
        event.record(self.stream)  # to look up the current one takes three times as long
        return event

    def end_step(self, number: int | None = None) -> None:
        """Ends a step and begins the one with this number, or the next one."""
        number = self.number + 1 if number is None else number
        # One in N, spread evenly: epochs and checkpoints, too, come after some number of steps.
        chosen = (number * 0x9E3779B1 & 0xFFFFFFFF) * self.every < 1 << 32
        if not (self.measuring or chosen or self.over) and number % PACED:
            self.number = number
            return
        begin = self.now()
        self.mark(self.phase)
        if self.measuring:
            self.over.append((self.number, self.marks))
            self.costs.append(self.cost)
            self.cost = 0
        self.number = number
        self.phase = FORWARD
        self.thread = threading.get_ident()
        self.measuring = chosen
        if self.measuring:
            self._find_cuda()
            self.marks = [(FORWARD, begin, self._event(), False)]
        while self.over and self._deliver(*self.over[0]):
            self.over.popleft()
        self._pace(begin)
        self.cost += min(2 * MOST, self.now() - begin)

    def _find_cuda(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            self.cuda = torch.cuda
            self.stream = torch.cuda.current_stream()

    def _deliver(self, number: int, marks: Marks) -> bool:
        """Whether the step is over; then it goes to the file, with a word if the GPU waited for its host."""
        last = marks[-1][2]
        if last is not None and not last.query():
            return len(self.over) > 64  # the GPU hangs
        times = [0] * (len(STAGES) + 1)
        waited = 0  # of parts that the GPU did no later than the host gave them
        try:
            for (_, begin, before, _), (stage, end, after, idle) in zip(marks, marks[1:], strict=False):
                took = end - begin if after is None else int(before.elapsed_time(after) * 1e6)
                times[stage] += took
                times[-1] += (end - begin) * (stage == DATA)
                waited += took * (idle and stage != WAIT and 10 * took <= 11 * (end - begin))
        except (RuntimeError, AttributeError):
            return True  # the step began without the GPU, or the program changed its stream
        self.events += [event for _, _, event, _ in marks if event is not None]
        self.file.add(number, times, waited > sum(times[:-1]) / 30)
        return True

    def _pace(self, now: int) -> None:
        """Chooses N."""
        if self.since is None:
            self.since = self.number, now
        steps = self.number - self.since[0]
        if steps < 1 or (now - self.since[1] < PACE and steps < PACED * self.every):
            return
        step = (now - self.since[1]) / steps
        # The least cost: others are those of a thread that had to wait for a core.
        wanted = max(RATE / step, min(self.costs, default=0) / (BUDGET * step))
        while self.every < wanted:
            self.every *= 2
        while self.every > 1 and self.every >= 4 * wanted:
            self.every //= 2
        self.since, self.costs = (self.number, now), self.costs[-1:]

    def spends(
        self, function: Function, stage: int, skip: Function = bool, of_stream: bool = False
    ) -> Function:
        """The function, whose time belongs to the stage; a method of streams counts for the step's stream."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if skip() or not self.measuring or self.inside or not self._mine(args[0] if of_stream else None):
                return function(*args, **kwargs)
            self.inside = True
            self.mark(self.phase)
            if stage == DATA:
                self.phase = FORWARD
            try:
                return function(*args, **kwargs)
            finally:
                self.inside = False
                self.mark(stage)

        return call

    def _mine(self, stream: Any) -> bool:
        """Whether the caller is on the thread and on the stream of the step."""
        if threading.get_ident() != self.thread and self.phase != BACKWARD:
            return False
        if self.cuda is None:
            return stream is None
        return self.cuda.current_stream() == self.stream and (stream is None or stream == self.stream)

    def backward(self, function: Function, queue: Callable[[Function], None]) -> Function:
        """The function, which ends with the wait for the reduction of gradients. `queue` has a function
        called when the gradients are computed, before those that DDP and FSDP queue."""

        @functools.wraps(function)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.measuring or self.phase == BACKWARD:
                return function(tensors, *args, **kwargs)
            self.mark(FORWARD)
            self.phase = rest = BACKWARD

            def computed() -> None:
                nonlocal rest
                self.mark(BACKWARD)
                rest = WAIT

            loss = tensors if hasattr(tensors, "register_hook") else next(iter(tensors))
            hook = loss.register_hook(lambda _: queue(computed)) if loss.requires_grad else None
            try:
                return function(tensors, *args, **kwargs)
            finally:
                if hook is not None:
                    hook.remove()
                self.mark(rest)
                self.phase = OPTIMIZER

        return backward

    def stepped(self, optimizer: object, *_: Any) -> None:
        """A step ends with the step of the same optimizer each time, as long as it is in use."""
        if self.explicit:
            return
        if self.leader != id(optimizer):
            self.others += 1
            if self.leader is not None and self.others < 64:
                return
            self.leader = id(optimizer)
        self.others = 0
        self.end_step()

    def assay_step(self, number: int) -> None:
        """`assay.step`: from now on the program marks its own steps."""
        self.explicit = True
        self.end_step(number)

    def assay_job_begin(self, name: bytes, _: int) -> None:
        """The beginning of an `assay.job`."""
        self.mark(self.phase)
        self.jobs.append(name.decode())

    def assay_job_end(self) -> None:
        """The end of an `assay.job`, whose time belongs to the stage of its name, if there is one."""
        name = self.jobs.pop() if self.jobs else ""
        self.mark(STAGES.index(name) if name in STAGES else self.phase)

    def assay_record_start(self) -> None:
        """Stages are always recorded."""

    assay_record_stop = assay_record_start


@functools.cache
def stages() -> Stages:
    """The marks of this process."""
    return Stages(StageFile(os.environ["ASSAY_RECORD_STAGES"]))


def _replace(owner: Any, name: str, by: Function) -> None:
    """Replaces a function until the program ends; what holds it then would keep its process groups alive."""
    atexit.register(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, by)


def start(torch: Any) -> None:
    """Hooks into PyTorch."""
    here = stages()
    optimizer = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook(here.stepped)
    iterator = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
    _replace(iterator, "__next__", here.spends(iterator.__next__, DATA))
    queue = torch.autograd.Variable._execution_engine.queue_callback
    _replace(torch.autograd, "backward", here.backward(torch.autograd.backward, queue))
    stream = torch.cuda.Stream
    for name in ("wait_event", "wait_stream"):
        _replace(stream, name, here.spends(getattr(stream, name), WAIT, of_stream=True))
    distributed = torch.distributed
    if not distributed.is_available():
        return
    _replace(distributed.Work, "wait", here.spends(distributed.Work.wait, WAIT))
    for name in filter(lambda name: hasattr(distributed, name), COLLECTIVES):
        # A compiler must see the function itself.
        wrapped = here.spends(getattr(distributed, name), WAIT, torch.compiler.is_dynamo_compiling)
        _replace(distributed, name, wrapped)
        _replace(distributed.distributed_c10d, name, wrapped)
