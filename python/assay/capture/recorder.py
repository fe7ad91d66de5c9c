"""What a process under capture has seen: distinct calls, their places in the program, and counts.

Each process appends to a file of its own, so that it can be killed at any time: a case when it is first
seen, then a comment with what is known of it. Counts follow from time to time and at the end
(assay.capture.corpus).
"""

import atexit
import json
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from multiprocessing.util import Finalize, register_after_fork
from types import CodeType, FrameType
from typing import Any

from assay.capture import corpus

FLUSH_S = 5.0  # seconds between two writings of counts
MOST_CASES = 20_000  # of a process, which bounds its memory
MOST_PLACES = 20  # of a case
FRAMES = 3  # callers that a place names


class Case:
    """One distinct call. A call that is no case has a reason instead of a number."""

    __slots__ = ("calls", "inside", "note", "number", "places", "reason", "seen_in", "steps", "written")

    def __init__(self, number: int, note: dict[str, Any], reason: str = "") -> None:
        self.number = number
        self.note = note  # what is known of it beside counts
        self.reason = reason
        self.calls = 0
        self.steps = 0  # how many steps made it
        self.seen_in = -1  # the last step that made it
        # Callers, module and calls by code and instruction.
        self.places: dict[tuple[CodeType, int], list[Any]] = {}
        self.inside: dict[Case, int] = {}  # a composite function: how often one call of it makes this call
        self.written = 0  # calls, when the note was written last

    def all_calls(self) -> int:
        """Calls of the program, and those of composite functions."""
        return self.calls + sum(each * outer.calls for outer, each in self.inside.items())


class Recorder:
    """The calls of this process. `options` are those of the command (assay.capture.command)."""

    def __init__(self, options: dict[str, Any], framework: str, library: str) -> None:
        self.options = options
        self.framework = framework
        self.library = os.path.dirname(os.path.abspath(library)) + os.sep
        self.step = 1  # which the program begins; the construction of a model belongs to the first
        self.on_step: Callable[[int], None] = lambda step: None
        self.after_fork: Callable[[], None] = lambda: None
        self.cases: list[Case] = []
        self.summaries: Any = None  # assay.capture.summaries, if values are asked for
        self.uncaptured: list[Case] = []
        self.dispatched = 0  # operators that ran inside of calls that were seen, in one step …
        self.missed: Counter[str] = Counter()  # … and outside of them
        self.left_out: Counter[str] = Counter()  # calls that are no cases, by reason
        self._own: dict[CodeType, bool] = {}  # whether code is the program's
        self._module_names: dict[int, tuple[Any, dict[int, str]]] = {}
        self._forget()
        atexit.register(self.flush)
        os.register_at_fork(after_in_child=self._in_child)
        # Forked processes of multiprocessing end without atexit.
        register_after_fork(self, lambda own: Finalize(None, own.flush, exitpriority=100))

    def _forget(self) -> None:
        self.fd = -1
        self._next_flush = time.monotonic() + FLUSH_S

    def _in_child(self) -> None:
        """After a fork: this process has a file of its own, with the cases that it makes itself."""
        self._forget()
        self.cases.clear()
        self.uncaptured.clear()
        self.left_out.clear()
        if self.summaries is not None:
            self.summaries.forget()
        self.after_fork()

    def chosen(self, step: int) -> bool:
        """Whether calls of this step are captured."""
        return self.options["steps"] is None or step in self.options["steps"]

    # -- what is seen --

    def new(self, text: str, known: dict[str, Any], name: str) -> Case:
        """A case that is seen for the first time. Without a text, and if there are too many, it is only
        counted."""
        if not text or len(self.cases) >= MOST_CASES:
            reason = known.get("reason", f"more than {MOST_CASES} distinct calls")
            case = Case(-1, {}, f"{name}: {reason}")
            self.uncaptured.append(case)
            return case
        case = Case(len(self.cases), {"first": self.step, **known})
        self.cases.append(case)
        self._write(f"{text}\n")
        return case

    def count(self, case: Case, frame: FrameType | None) -> None:
        """One more call, made by this frame or a caller of it."""
        case.calls += 1
        if case.seen_in != self.step:
            case.seen_in = self.step
            case.steps += 1
        if case.number >= 0:
            self.place(case, frame)

    def place(self, case: Case, frame: FrameType | None) -> None:
        """Counts the place in the program from which this frame was called."""
        own, innermost = self._own, frame
        while frame is not None:
            code = frame.f_code
            known = own.get(code)
            if known is None:
                known = own[code] = self._is_own(code)
            if known:
                place = case.places.get((code, frame.f_lasti))
                if place is None:
                    self._new_place(case, frame, innermost)
                else:
                    place[2] += 1
                return
            frame = frame.f_back

    def within(self, case: Case, function: str) -> None:
        """The framework's function makes this call."""
        if case.number >= 0 and function not in case.note.get("in", ()):
            case.note.setdefault("in", []).append(function)
            self._write_note(case)

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        generated = file.startswith("<") or "/to_static_tmp/" in file  # of Paddle, with a new name each time
        return not generated and not file.startswith((self.library, corpus.OWN_FILES))

    def _new_place(self, case: Case, frame: FrameType, innermost: FrameType | None) -> None:
        if len(case.places) >= MOST_PLACES:
            next(reversed(case.places.values()))[2] += 1
            return
        frames = []
        at: FrameType | None = frame
        while at is not None and len(frames) < FRAMES:
            if self._own.get(at.f_code) or self._is_own(at.f_code):
                frames.append(f"{corpus.short_name(at.f_code.co_filename)}:{at.f_lineno}")
            at = at.f_back
        case.places[frame.f_code, frame.f_lasti] = [frames, self._module_of(innermost), 1]
        self._write_note(case)

    def _module_of(self, at: FrameType | None) -> str:
        """The path of the innermost module whose call this is, such as `layers.0.linear1`; empty outside of
        modules."""
        nn = sys.modules.get(f"{self.framework}.nn")
        base = getattr(nn, "Module", None) or getattr(nn, "Layer", None)
        inner, outer = None, None
        while base is not None and at is not None:
            if at.f_code.co_argcount and at.f_code.co_varnames[0] == "self":
                found = at.f_locals.get("self")
                if isinstance(found, base):
                    inner, outer = inner if inner is not None else found, found
            at = at.f_back
        if outer is None:
            return ""
        whole, names = self._module_names.get(id(outer), (None, {}))
        if whole is None or whole() is not outer or id(inner) not in names:
            walk = getattr(outer, "named_modules", None) or outer.named_sublayers
            names = {id(each): name for name, each in walk()} if hasattr(outer, "training") else {}
            self._module_names[id(outer)] = weakref.ref(outer), names
        return names.get(id(inner)) or type(inner).__name__

    def begin_step(self, step: int) -> None:
        """The program begins this step."""
        if self.summaries is not None:
            self.summaries.end_step()
        self.step = step
        self.on_step(step)
        if time.monotonic() > self._next_flush:
            self.flush()

    def found_nan(self, case: Case, is_input: bool) -> None:
        """In this step a result is NaN for the first time, or an input that no captured call has made."""
        if case.number >= 0:
            nan = {"case": case.number, "step": self.step, "input": is_input}
            self._write(f"{corpus.WHOLE} {json.dumps({'first_nan': nan})}\n")

    # -- the file --

    def _write(self, text: str) -> None:
        if self.fd < 0:
            self.fd = os.open(
                f"{self.options['out']}{corpus.PART}{os.getpid()}",
                os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
                0o644,
            )
            head = {"rank": rank(), "python": sys.executable}
            head |= {name: self.options[name] for name in ("framework", "command")}
            text = f"{corpus.HEAD} {json.dumps(head)}\n{text}"
        try:
            os.write(self.fd, text.encode())
        except OSError as error:  # a full disk: the program goes on
            print(f"assay capture: {error}", file=sys.stderr)

    def flush(self) -> None:
        """Writes the counts that have changed."""
        self._next_flush = time.monotonic() + FLUSH_S
        if not self.cases and not self.left_out and not self.uncaptured:
            return
        if self.summaries is not None:
            self.summaries.end_step()
            self.summaries.fetch()
        for case in self.cases:
            if case.written != case.all_calls():
                self._write_note(case)
        left_out = self.left_out.copy()
        for case in self.uncaptured:
            if case.reason:
                left_out[case.reason] += case.calls
        whole = {"seen": self.dispatched, "missed": self.missed, "steps": self.step - 1, "left_out": left_out}
        self._write(f"{corpus.WHOLE} {json.dumps(whole)}\n")

    def _write_note(self, case: Case) -> None:
        case.written = case.all_calls()
        steps = max([case.steps, *(outer.steps for outer in case.inside)])
        note = {"calls": case.written, "steps": steps, "at": list(case.places.values()), **case.note}
        if self.summaries is not None:
            note |= self.summaries.of(case)
        self._write(f"{corpus.ONE} {json.dumps([case.number, note])}\n")


def recorder_of(framework: str, module: Any) -> Recorder | None:
    """The recorder of this process, as `assay capture` asks; None if calls of its rank are not wanted."""
    options = json.loads(os.environ["ASSAY_CAPTURE"])
    if options["ranks"] is not None and rank() not in options["ranks"]:
        return None
    options["framework"] = f"{framework} {module.__version__}"
    return Recorder(options, framework, module.__file__)


def rank() -> int:
    """The rank of this process among those of its program; 0 if nothing tells it."""
    for name in ("RANK", "PADDLE_TRAINER_ID", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
