"""What the tensors of captured calls hold, without keeping them: ranges and counts, computed on the device.

The inputs and results of a call are summarised at its first, second, fourth, eighth … time. Sums of all calls
are kept until the end of the step and show the first NaN. Both are fetched after a step, never inside.
"""

import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

FIELDS = ("min", "max", "nan", "inf", "zero", "count")
MOST_TENSORS = 8  # of a call
MOST_SEEN = 10_000


class Summaries:
    """The summaries of one process."""

    def __init__(self, torch: Any, found_nan: Callable[[Any, bool], None]) -> None:
        self.torch = torch
        self.found_nan = found_nan
        self.pending: list[tuple[Any, str, Any]] = []  # not fetched yet: case, tensor's name, numbers
        self.sums: list[tuple[Any, bool, Any]] = []  # of this step: case, whether of an input, sum
        self.known: dict[Any, dict[str, list[float]]] = {}
        self.seen: dict[int, tuple[Any, Any]] = {}  # tensors whose sums were taken, by id, and their memory
        self.clean = True  # no NaN so far

    def take(self, values: Any, whole: bool, inputs: Any = ()) -> list[Any]:
        """The sums of the tensors whose values are new, and with `whole` the summaries of all. A result in
        the memory of an input is only new if the call has written it. Needs a state without modes."""
        taken: list[Any] = []
        with self.torch.no_grad():
            for tensor in self._tensors(values) if self.clean or whole else ():
                version = -1 if tensor.is_inference() else tensor._version
                memory = tensor.untyped_storage().data_ptr(), version
                old = version >= 0 and any(memory == each for _, _, each in inputs)
                sums = self.clean and tensor.is_floating_point() and self._is_new(tensor, memory) and not old
                total = tensor.sum() if sums else None
                taken.append((total, self._summary(tensor) if whole else None, memory))
        return taken

    def _is_new(self, tensor: Any, memory: Any) -> bool:
        """Whether no sum of these values was taken."""
        known = self.seen.get(id(tensor))
        self.seen[id(tensor)] = weakref.ref(tensor), memory
        return known is None or known[0]() is not tensor or known[1] != memory or memory[1] < 0

    def keep(self, case: Any, name: str, taken: list[Any]) -> None:
        """What was taken belongs to the inputs ("in") or the results ("out") of this case."""
        if case.number < 0:
            return
        for number, (total, summary, _) in enumerate(taken):
            if total is not None:
                self.sums.append((case, name == "in", total))
            if summary is not None:
                self.pending.append((case, f"{name}{number}", summary))

    def _tensors(self, values: Any) -> Iterator[Any]:
        count = 0
        for value in values if isinstance(values, list | tuple) else (values,):
            parts = value if isinstance(value, list | tuple) else (value,)
            for part in parts:
                if isinstance(part, self.torch.Tensor) and part.layout is self.torch.strided:
                    if part.is_complex() or part.is_quantized or part.is_meta or count == MOST_TENSORS:
                        continue
                    if part.numel():
                        count += 1
                        yield part

    def _summary(self, tensor: Any) -> Any:
        """The numbers of FIELDS as one tensor in float64 on the tensor's device."""
        torch = self.torch
        low, high = torch.aminmax(tensor)
        nan = inf = 0.0
        # A CPU is asked at once, which saves passes over finite values. Another device would be waited for.
        finite = tensor.device.type == "cpu" and math.isfinite(float(low) - float(high))
        if tensor.is_floating_point() and not finite:
            nan, inf = torch.isnan(tensor).sum(), torch.isinf(tensor).sum()
            low, high = torch.aminmax(torch.nan_to_num(tensor, 0.0, 0.0, 0.0))
        zeros = tensor.numel() - torch.count_nonzero(tensor)
        numbers = [torch.as_tensor(each, device=tensor.device) for each in (low, high, nan, inf, zeros)]
        return torch.stack([each.to(torch.float64) for each in (*numbers, zeros.new_tensor(tensor.numel()))])

    def end_step(self) -> None:
        """Looks for the first NaN of the step that has ended."""
        sums, self.sums = self.sums, []
        if len(self.seen) > MOST_SEEN:
            self.seen.clear()
        with self.torch._C.DisableTorchFunction():
            self._look(sums)

    def _look(self, sums: list[Any]) -> None:
        for device in {each[2].device for each in sums}:
            own = [each for each in sums if each[2].device == device]
            bad = self.torch.isnan(self.torch.stack([each[2].to(self.torch.float64) for each in own]))
            if bad.any():
                first = own[int(bad.nonzero()[0])]
                self.clean = False
                self.found_nan(first[0], first[1])
                return

    def fetch(self) -> None:
        """Reads the pending numbers and joins them with those of earlier calls."""
        pending, self.pending = self.pending, []
        with self.torch._C.DisableTorchFunction():
            pending = [(case, name, numbers.tolist()) for case, name, numbers in pending]
        for case, name, numbers in pending:
            low, high, nan, inf, zero, count = numbers
            known = self.known.setdefault(case, {})
            if name in known:
                old = known[name]
                low, high = min(low, old[0]), max(high, old[1])
                nan, inf, zero, count = nan + old[2], inf + old[3], zero + old[4], count + old[5]
            known[name] = [low, high, nan, inf, zero, count]

    def of(self, case: Any) -> dict[str, Any]:
        """What is known of a case, as a part of its note."""
        known = self.known.get(case, {})
        named = {name: dict(zip(FIELDS, each, strict=True)) for name, each in known.items()}
        return {"values": named} if named else {}
