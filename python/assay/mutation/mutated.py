"""A call with a fault, compared with the same call without it."""

import random
from typing import Any

from assay.call import Call
from assay.mutation.elements import Elements, elements_of
from assay.mutation.faults import FAULTS, Fault
from assay.mutation.leaves import INAPPLICABLE
from assay.mutation.misread import index_fill
from assay.regimes import fill_of, specs_in
from assay.results import Numbers
from assay.spec import TensorSpec
from assay.wire import SKIPPED, Job, Stop

# The prefix of the message of an equivalent mutant; src/verdict/mutants.cc reads it.
EQUIVALENT = "equivalent"

Leaves = list[tuple[str, Any]]


class Watched(Call):
    """A call with a fault that records the bytes of everything it returns."""

    def __init__(self, of: "Call", fault: Fault) -> None:
        super().__init__(of.framework, of.native, of.functions, of.hand_over, of.job)
        self.fault = fault
        self.draw = random.Random(f"{of.job.seed} {of.job.mutant}")
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

    def specs(self) -> list[TensorSpec]:
        """The specifications of the case's tensors."""
        return list(specs_in(self.named.values()))

    def promised(self) -> set[int]:
        """The numbers of the tensors that the call may change."""
        return self._promised()

    def _forward(self, function: Any, args: list[Any], kwargs: Any) -> Any:
        args, kwargs = self.fault.arguments(self, self.taken, args, kwargs)
        return super()._forward(self.fault.around(self, function), args, kwargs)

    def _construction(self) -> Any:
        made = super()._construction()
        return made and self.fault.arguments(self, self.entry.parameters, *made)

    def _tensor(self, spec: TensorSpec, parameter: str, path: str, tensor: Any = None) -> Any:
        made = super()._tensor(spec, parameter, path, tensor)
        index_fill(self, path, fill_of(self.entry, parameter, self.named, spec, self.job.values, self.rules))
        self.fault.filled(self, path, spec, made)
        return made

    def _handed_over(self, leaves: Leaves, gradients: bool) -> Leaves:
        change = self.fault.gradients if gradients else self.fault.results
        changed = change(self, leaves)
        self.seen.append([(path, self._bytes(value)) for path, value in changed])
        return [
            (path, value.handed_over() if isinstance(value, Elements) else value) for path, value in changed
        ]

    def _bytes(self, value: Any) -> Any:
        found = value if isinstance(value, Elements) else self.copy_of(value)
        if found is not None:
            return found.dtype, found.shape, bytes(found.data)
        return value.values.tobytes() if isinstance(value, Numbers) else repr(value)


class Mutated(Watched):
    """The call of a job with a fault. `known` caches the unmodified calls of a batch."""

    def __init__(
        self, framework: Any, native: Any, functions: Any, hand_over: Any, job: Job, known: Any
    ) -> None:
        super().__init__(Call(framework, native, functions, hand_over, job), FAULTS[job.mutant])
        self.known = known

    def run(self) -> None:
        """Runs the call without the fault, unless it is known, and with it. Raises Stop if there is no
        mutant."""
        asked = self.job.id, self.job.values
        if asked not in self.known:
            as_it_is = Watched(self, Fault("", ""))
            as_it_is.run()
            self.known[asked] = as_it_is.seen, as_it_is.overwritten
        try:
            super().run()
        except Stop:
            raise
        except Exception as error:
            if self.fault.raises:
                raise
            error.__traceback__ = None
            raise Stop(SKIPPED, f"{INAPPLICABLE}: the faulty call raises {type(error).__name__}") from None
        if (self.seen, self.overwritten) == self.known[asked]:
            raise Stop(SKIPPED, f"{EQUIVALENT}: no bit differs")
