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


class Summaries:
    """The summaries of one process."""

    def __init__(self, torch: Any, found_nan: Callable[[Any, bool], None]) -> None:
        self.torch = torch
        self.found_nan = found_nan
        self.pending: list[tuple[Any, str, Any]] = []  # not fetched yet: case, tensor's name, numbers
        self.sums: list[tuple[Any, Any, Any]] = []  # of this step: case, sum of a result, its inputs
        self.known: dict[Any, dict[str, list[float]]] = {}
        self.clean = True  # no NaN so far

    def take(self, values: Any, whole: bool, inputs: Any = None) -> list[Any]:
        """Of each tensor its memory, with `whole` its summary, and its sum if it is a result that the call
        has written: `inputs` are what was taken of the inputs. Needs a state without modes."""
        taken: list[Any] = []
        with self.torch.no_grad():
            for tensor in self._tensors(values) if self.clean or whole else ():
                memory, total = self._memory(tensor), None
                if inputs is not None and self.clean and tensor.is_floating_point():
                    written = memory[1] is None or all(memory != each for _, _, each, _ in inputs)
                    total = tensor.sum() if written else None
                taken.append((total, self._summary(tensor) if whole else None, memory, weakref.ref(tensor)))
        return taken

    def _memory(self, tensor: Any) -> tuple[int, int | None]:
        return tensor.untyped_storage().data_ptr(), None if tensor.is_inference() else tensor._version

    def keep(self, case: Any, name: str, taken: list[Any], inputs: Any = ()) -> None:
        """What was taken belongs to the inputs ("in") or the results ("out") of this case."""
        if case.number < 0:
            return
        for number, (total, summary, _, _) in enumerate(taken):
            if total is not None:
                self.sums.append((case, total, inputs))
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
        with self.torch._C.DisableTorchFunction(), self.torch.no_grad():
            self._look(sums)

    def _look(self, sums: list[Any]) -> None:
        for device in {each[1].device for each in sums}:
            own = [each for each in sums if each[1].device == device]
            bad = self.torch.isnan(self.torch.stack([each[1].to(self.torch.float64) for each in own]))
            if bad.any():
                case, _, inputs = own[int(bad.nonzero()[0])]
                self.clean = False
                self.found_nan(case, any(map(self._is_nan, inputs)))
                return

    def _is_nan(self, taken: Any) -> bool:
        """Whether an input, which is what it was, has NaN."""
        *_, memory, found = taken
        tensor = found()
        same = tensor is not None and self._memory(tensor) == memory and tensor.is_floating_point()
        return same and bool(self.torch.isnan(tensor.sum()))

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
