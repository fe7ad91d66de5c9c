"""A lane: runs one case after another in one framework and hands over the results.

For each case it makes and fills the tensors, calls the API (or, in the reference lane, the function of the
API tables), differentiates, copies the results into the arena and replies. It does not compare.
"""

from typing import Any

from assay import extensions
from assay.bugs import note_bug
from assay.call import STAGE_INDEX, Call, Functions
from assay.dump import Dump
from assay.frameworks import Framework
from assay.handover import HandOver
from assay.inputs import GIANT, LARGE_INPUT, Context, is_large, only_itself
from assay.operators import spelled
from assay.orphans import Leaks
from assay.regimes import OBSERVED, USUAL, Skip, Tensors, skip_of, specs_in
from assay.sanitizer import Sanitizer
from assay.shared import NO_KERNEL, OK, OUT_OF_MEMORY, RAISED, SANITIZER, SKIPPED, STAGES, UNSUPPORTED
from assay.spec import FLOATING
from assay.truth import evaluations
from assay.wire import Job, Stop, text_of

MAX_MESSAGE = 4000
# After a case with more elements, or with lent results, the lane releases memory that others may need. Such a
# case may have needed many times its own size.
LARGE = 1 << 20
NO_TIMES = (0,) * len(STAGES)  # for a job that does not run


class Lane:
    """Serves the channel that `native` has open, in `framework`."""

    def __init__(self, framework: Framework, native: Any) -> None:
        self.framework = framework
        self.native = native
        self.functions: dict[str, Functions] = {}  # by execution
        self.hand_over = HandOver(framework, native)
        self.sanitizer = Sanitizer(native)
        self.leaks = Leaks()
        self.of_batch: tuple[Any, dict[Any, Any]] = (None, {})
        # Id and ending of the last case under usual values.
        self.usual: tuple[int, int, str, str] = (0, OK, "", "")
        self.tensors: tuple[int, Tensors | None] = (0, None)  # id and tensors of that case
        self.timed: Call | None = None  # the timed case, from its first turn on
        self.replaced: bool | None = None  # whether kernels of the framework are replaced; None: not asked

    def serve(self) -> None:
        """Runs cases until the slot closes the channel."""
        large = False
        while (job := self.native.next()) is not None:
            if self.hand_over.lent:  # as in Call.let_go()
                self.native.scramble(False)
                self.hand_over.lent.clear()
                self.native.scramble(True)
            if large or not job:
                self.framework.release()
            if not job:  # the slot only wants lent memory back
                large = False
                continue
            case = spelled(Job(*job))
            elements = self._run(case)
            self.leaks.look(case.api)
            # A timed case keeps its memory from turn to turn.
            large = self.timed is None and (elements > LARGE or bool(self.hand_over.lent))
            if large:  # lent results stay until the next job, which may come late
                self.framework.release()

    def _run(self, job: Job) -> int:
        """Runs a case and replies; returns the elements of its inputs."""
        functions = self.functions.get(job.lane.execution)
        if functions is None:
            try:
                functions = Functions(self.framework, job.lane.execution)
            except Stop as error:
                self.native.reply(error.status, "build", str(error), [], [], False, (), [], [], 0, False)
                return 0
            self.functions[job.lane.execution] = functions
        self.sanitizer.begin()
        first = self._once(job, functions, 1)
        again = [self._once(job, functions, run) for run in range(2, functions.execution.runs + 1)]
        if text := self.sanitizer.found():
            first, again = (RAISED, SANITIZER, text, [], [], False, first[6], [], [], 0, False), []
        changed = self.framework.state.restore()
        if changed:
            print(f"STATE: {job.api} has changed {', '.join(changed)}", flush=True)
        try:
            self.native.reply(*first, bool(changed), again)
        except Exception as error:  # a result that fits no reply, such as text that is not UTF-8
            self.native.reply(
                RAISED, "copy", describe_error(error), [], [], False, first[6], [], [], 0, False
            )
        return self.elements

    def _once(self, job: Job, functions: Functions, run: int) -> tuple[Any, ...]:
        """The arguments of native.reply() for one run of a case. Frees the case's memory, which is not
        overwritten meanwhile (Call.let_go)."""
        self.elements = 0
        try:
            return self._attempt(job, functions, run)
        finally:
            if self.elements >= LARGE_INPUT:
                self.native.scramble(True)
            if self.elements >= GIANT:
                self.native.bound_memory(False)

    def _attempt(self, job: Job, functions: Functions, run: int) -> tuple[Any, ...]:
        foreseen = self._foreseen(job)
        if isinstance(foreseen, Skip):
            return SKIPPED, "build", foreseen.reason, [], [], False, NO_TIMES, [], [], 0, False
        call = self._timed_call(job, functions) if functions.execution.timed else self._call(job, functions)
        call.runs = foreseen
        status, phase, message = OK, "", ""
        needed_kb = 0
        usual = job.values == USUAL and not job.mutant
        try:
            if not usual and self.usual[0] == job.id and ends_all(*self.usual[1:3]):
                _, status, phase, message = self.usual
            else:
                if job.lane.dump_dir:
                    call.inputs.dump = Dump(self.framework, job, run)
                elif job.try_unfilled and self._costs_to_fill(job):
                    self._try_unfilled(call, functions)
                call.run()
                message = call.variant.planted
        except BaseException as error:  # SystemExit, too: an API has raised it
            status, phase, message = self._status(error, job), call.phase, describe_error(error)
            if status == OUT_OF_MEMORY:
                needed_kb = self.framework.needed_kb(error)
            call.let_go()  # its frames hold the arguments
            error.__traceback__ = None
            self.timed = None
            if call.learnt(error):
                return self._attempt(job, functions, run)
        if call.inputs.dump is not None:
            call.inputs.dump.finish(phase, message)
        if usual and run == 1:
            self.usual = job.id, status, phase, message
            self.tensors = job.id, Tensors(call.entry, call.inputs.named) if status == OK else None
        self.elements = max(self.elements, call.inputs.elements)
        truth = []
        if status == OK and job.perturbations and call.refers:
            known, asked = self._known(job), (job.id, job.values, job.perturbations, run)
            if call.inputs.elements >= LARGE_INPUT:
                self.native.scramble(True)
            if asked not in known:
                known[asked] = self._truth(call), call.note
            truth, message = known[asked]
            if truth is None:
                status, truth, message = OUT_OF_MEMORY, [], "no memory is left to compute the truth"
        results = call.outputs, call.gradients, call.differentiable
        times = call.times()
        took_kb = self.framework.peak_kb() if self.elements > LARGE else 0
        device_kb = needed_kb if status == OUT_OF_MEMORY else took_kb
        alone = status == OK and only_itself(job, call.entry, self._replaced)
        return status, phase, message, *results, times, truth, call.overwritten, device_kb, alone

    def _replaced(self) -> bool:
        if self.replaced is None:
            self.replaced = bool(extensions.replaced(self.framework))
        return self.replaced

    def _foreseen(self, job: Job) -> Skip | bool:
        """Whether the case runs under these values: what the arguments that it had under usual values tell.
        False if they do not. Half of all trials are skipped, so asking before a call is built pays."""
        of, tensors = self.tensors
        if tensors is None or of != job.id or job.lane.dump_dir or job.values == OBSERVED:
            return False
        try:
            return skip_of(tensors.entry, tensors.named, job.values, tensors) or True
        except Exception:  # of a rule: the call raises it again, and says so
            return False

    @staticmethod
    def _costs_to_fill(job: Job) -> bool:
        """Whether a first try with unfilled inputs pays. Integers are always filled."""
        specs = specs_in((*job.args, *job.kwargs.values()))
        plain = job.lane.device == "cpu" and job.lane.execution == "eager"
        return plain and any(is_large(spec) and spec.dtype in FLOATING for spec in specs)

    def _try_unfilled(self, call: Call, functions: Functions) -> None:
        """Raises the framework's error if it has no kernel; drops any other result."""
        trial = Call(call.context, call.job)
        missing = None
        try:
            trial.run_unfilled()
        except BaseException as error:
            if self.framework.no_kernel(error):
                missing = error
            trial.let_go()
            error.__traceback__ = None
        self.elements = trial.inputs.elements
        if missing is not None:
            call.phase = trial.phase
        del trial
        self.native.scramble(True)
        if missing is not None:
            raise missing
        self.native.enter(STAGE_INDEX["build"])  # of the call itself

    def _call(self, job: Job, functions: Functions) -> Call:
        """The call of a case; in the test lane with the job's planted fault, if it has one."""
        context = Context(self.framework, self.native, functions, self.hand_over)
        if not job.mutant or job.lane.role != "test":
            return Call(context, job)
        from assay.mutation.mutated import faulty_call

        return faulty_call(context, job, self._known(job))

    def _timed_call(self, job: Job, functions: Functions) -> Call:
        """The timed case, which stays for all turns."""
        if self.timed is None or self.timed.job.id != job.id:
            from assay.timed import Timed

            self.timed = None  # frees its memory before the next case takes as much
            self.framework.release()
            self.timed = Timed(Context(self.framework, self.native, functions, self.hand_over), job)
        self.timed.job = job
        return self.timed

    def _known(self, job: Job) -> dict[Any, Any]:
        """A cache for the rest of the batch, whose results the arena keeps. With planted faults the same
        truth is needed many times. A new settings object marks a new batch."""
        if self.of_batch[0] is not job.settings:
            self.of_batch = job.settings, {}
        return self.of_batch[1]

    def _truth(self, call: Call) -> list[Any] | None:
        """Evaluations of the truth; empty if the reference cannot be computed in float64, None for want of
        memory."""
        try:
            return evaluations(call)
        except Exception as error:
            note_bug(call.job.api, error)
            error.__traceback__ = None
            return None if self.framework.out_of_memory(error) else []

    def _status(self, error: BaseException, job: Job) -> int:
        if isinstance(error, Stop):
            return error.status
        if self.framework.out_of_memory(error):
            return OUT_OF_MEMORY
        if self.framework.no_kernel(error):
            return NO_KERNEL
        gives_up = job.lane.reference_functions and isinstance(error, NotImplementedError)
        return UNSUPPORTED if gives_up else RAISED


def ends_all(status: int, phase: str) -> bool:
    """Whether a case with this ending under usual values has no result under other values: they use the same
    kernels."""
    return status != OK and phase != "backward"


def describe_error(error: BaseException) -> str:
    """The type of an error and the part of its message that tells the problem."""
    if isinstance(error, Stop):
        return str(error)
    message = text_of(error)
    # Paddle prints C++ frames before the summary.
    message = message.rsplit("Error Message Summary:", 1)[-1].strip("- \n")
    if error.__cause__ is not None:
        message += f" (from {type(error.__cause__).__name__}: {text_of(error.__cause__)})"
    message = message.encode(errors="replace").decode()  # it may contain bytes that are not UTF-8
    return f"{type(error).__name__}: {message}"[:MAX_MESSAGE]
