"""What the tensors of captured calls hold, without keeping them: ranges and counts, computed on the device.

The inputs and results of a call are summarised at its first, second, fourth, eighth … time. Sums of all calls
are kept until the end of the step and show the first NaN. Both are fetched after a step, never inside.
"""

from collections.abc import Callable, Iterator
from typing import Any

FIELDS = ("min", "max", "nan", "inf", "zero", "count")
MOST_TENSORS = 8  # of a call


class Summaries:
    """The summaries of one process."""

    def __init__(self, torch: Any, found_nan: Callable[[Any, bool], None]) -> None:
        self.torch = torch
        self.found_nan = found_nan
        self.pending: list[tuple[Any, str, Any]] = []  # not fetched yet: case, tensor's name, numbers
        self.sums: list[tuple[Any, bool, Any]] = []  # of this step: case, whether of an input, sum
        self.known: dict[Any, dict[str, list[float]]] = {}
        self.clean = True  # no NaN so far

    def take(self, values: Any, whole: bool) -> list[Any]:
        """The sums of the tensors, and with `whole` their summaries. Needs a state without modes."""
        taken: list[Any] = []
        with self.torch.no_grad():
            for tensor in self._tensors(values) if self.clean or whole else ():
                if tensor.numel():
                    sums = self.clean and tensor.is_floating_point()
                    taken.append((tensor.sum() if sums else None, self._summary(tensor) if whole else None))
        return taken

    def keep(self, case: Any, name: str, taken: list[Any]) -> None:
        """What was taken belongs to the inputs ("in") or the results ("out") of this case."""
        if case.number < 0:
            return
        for number, (total, summary) in enumerate(taken):
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
                    count += 1
                    yield part.detach()

    def _summary(self, tensor: Any) -> Any:
        """The numbers of FIELDS as one tensor in float64 on the tensor's device."""
        torch = self.torch
        zeros = (tensor == 0).sum()
        nan = inf = torch.zeros_like(zeros)
        if tensor.is_floating_point():
            nan, inf = torch.isnan(tensor).sum(), torch.isinf(tensor).sum()
            tensor = torch.where(torch.isfinite(tensor), tensor, torch.zeros_like(tensor))
        numbers = (*torch.aminmax(tensor), nan, inf, zeros, torch.full_like(zeros, tensor.numel()))
        return torch.stack([each.to(torch.float64) for each in numbers])

    def end_step(self) -> None:
        """Looks for the first NaN of the step that has ended."""
        sums, self.sums = self.sums, []
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
