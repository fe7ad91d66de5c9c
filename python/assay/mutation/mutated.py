"""A call with a fault, compared with the same call without it."""

import random
import weakref
from collections.abc import Callable
from typing import Any

from assay.call import Call
from assay.inputs import Context
from assay.mutation.elements import Elements, elements_of
from assay.mutation.faults import FAULTS, Fault
from assay.mutation.leaves import INAPPLICABLE
from assay.mutation.misread import index_fill
from assay.regimes import fill_of, specs_in
from assay.results import Numbers
from assay.spec import TensorSpec
from assay.variant import Variant
from assay.wire import SKIPPED, Job, Stop

# The prefix of the message of an equivalent mutant; src/verdict/mutants.cc reads it.
EQUIVALENT = "equivalent"

Leaves = list[tuple[str, Any]]


class Watched(Variant):
    """A call with a fault that records the bytes of everything it returns. `known` caches the unmodified
    calls of a batch."""

    def __init__(self, context: Context, job: Job, fault: Fault, known: dict[Any, Any]) -> None:
        self.framework, self.job = context.framework, job
        self.fault = fault
        self.known = known
        self.call: Any = None  # set by watched()
        self.draw = random.Random(f"{job.seed} {job.mutant}")
        self.seen: list[Any] = []
        # State of the faults.
        self.inputs_of_case: list[tuple[str, Any]] = []
        self.before: dict[str, Elements | None] = {}
        self.other: Any = None
        self.fills: dict[str, Any] = {}  # of indices, by parameter

    def note(self, words: str) -> None:
        """Records where the fault is; the first call counts."""
        self.planted = self.planted or words

    def copy_of(self, value: Any) -> Elements | None:
        """A copy of a tensor or float for a fault to change; None for other values."""
        return elements_of(self.framework, value)

    @property
    def entry(self) -> Any:
        """The API."""
        return self.call.entry

    @property
    def changes(self) -> str:
        """The parameter that the call changes in place."""
        return self.call.inputs.changes

    def specs(self) -> list[TensorSpec]:
        """The specifications of the case's tensors."""
        return list(specs_in(self.call.inputs.named.values()))

    def promised(self) -> set[int]:
        """The numbers of the tensors that the call may change."""
        return self.call.inputs.promised()

    def arguments(self, parameters: Any, args: list[Any], kwargs: Any) -> Any:
        return self.fault.arguments(self, tuple(parameters), args, kwargs)

    def around(self, function: Any) -> Any:
        return self.fault.around(self, function)

    def built(self, tensor: Any, spec: TensorSpec, parameter: str, path: str) -> None:
        inputs = self.call.inputs
        fill = fill_of(self.entry, parameter, inputs.named, spec, self.job.values, inputs.rules)
        index_fill(self, path, fill)
        self.fault.filled(self, path, spec, tensor)

    def results(self, leaves: Leaves, gradients: bool) -> Leaves:
        change = self.fault.gradients if gradients else self.fault.results
        changed = change(self, leaves)
        self.seen.append([(path, self._bytes(value)) for path, value in changed])
        return [
            (path, value.handed_over() if isinstance(value, Elements) else value) for path, value in changed
        ]

    def run(self, evaluate: Callable[[], None]) -> None:
        """Runs the call without the fault, unless it is known, and with it. Raises Stop if there is no
        mutant."""
        if not self.fault.what:
            return evaluate()
        asked = self.job.id, self.job.values
        if asked not in self.known:
            as_it_is = watched(self.call.context, self.job, Fault("", ""), {})
            as_it_is.run()
            self.known[asked] = as_it_is.variant.seen, as_it_is.overwritten
        try:
            evaluate()
        except Stop:
            raise
        except Exception as error:
            if self.fault.raises:
                raise
            error.__traceback__ = None
            raise Stop(SKIPPED, f"{INAPPLICABLE}: the faulty call raises {type(error).__name__}") from None
        if (self.seen, self.call.overwritten) == self.known[asked]:
            raise Stop(SKIPPED, f"{EQUIVALENT}: no bit differs")

    def _bytes(self, value: Any) -> Any:
        found = value if isinstance(value, Elements) else self.copy_of(value)
        if found is not None:
            return found.dtype, found.shape, bytes(found.data)
        return value.values.tobytes() if isinstance(value, Numbers) else repr(value)


def watched(context: Context, job: Job, fault: Fault, known: dict[Any, Any]) -> Call:
    """The call with this fault."""
    variant = Watched(context, job, fault, known)
    call = Call(context, job, variant)
    variant.call = weakref.proxy(call)  # a cycle would keep the tensors
    return call


def faulty_call(context: Context, job: Job, known: dict[Any, Any]) -> Call:
    """The call of a job with its planted fault."""
    return watched(context, job, FAULTS[job.mutant], known)
