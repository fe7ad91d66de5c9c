"""What the tensors of captured calls hold, without keeping them: ranges and counts, computed on the device.

The inputs and results of a call are summarised at its first, second, fourth, eighth … time. Sums of all calls
are kept until the end of the step and show the first NaN. Both are fetched after a step, never inside.
"""

import contextlib
import functools
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

FIELDS = ("min", "max", "nan", "inf", "zero", "count")
KINDS = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
MOST_TENSORS = 8  # of a call
SAMPLE = 1 << 14  # elements among which zeros, order and distinct numbers are counted


@functools.cache
def is_plain(kind: type) -> bool:
    """Whether tensors of this class have memory of their own and do what PyTorch's tensors do."""
    torch = sys.modules["torch"]
    own = getattr(kind, "__torch_function__", None)
    plain = torch._C._disabled_torch_function_impl, torch.Tensor.__torch_function__.__func__
    dispatch = torch._C._disabled_torch_dispatch_impl
    return (
        issubclass(kind, torch.Tensor)
        and getattr(own, "__func__", own) in plain
        and kind.__torch_dispatch__ is dispatch  # type: ignore[attr-defined]
    )


class Summaries:
    """The summaries of one process. A subclass is for another framework than PyTorch."""

    names_repeats = False  # whether a case writes a tensor that is passed twice as two

    def __init__(self, torch: Any, found_nan: Callable[[Any, bool], None]) -> None:
        self.torch = torch
        self.found_nan = found_nan
        self.forget()
        self.clean = True  # no NaN so far
        self.kinds = {getattr(torch, name) for name in KINDS}

    def forget(self) -> None:
        """At first, and after a fork."""
        self.pending: list[tuple[Any, str, Any]] = []  # not fetched yet: case, tensor's name, numbers
        self.sums: list[tuple[Any, Any, Any]] = []  # of this step: case, sum of a result, its inputs
        self.known: dict[Any, dict[str, list[Any]]] = {}

    def take(self, values: Any, calls: int, inputs: Any = None, begin: int = 0) -> list[Any]:
        """Of each tensor from the number `begin` on: its number, its sum if it is a result that the call has
        written, its summary if it is time for one, and its memory. `calls` numbers the call, `inputs` are
        what was taken of its inputs. Tensors without memory, as inside of vmap, give nothing."""
        try:
            with self.alone():
                return self._taken(values, calls, inputs, begin)
        except Exception:
            return []

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """A context in which no mode sees the calls: not the capture's, and none that traces the program."""
        torch = self.torch
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
            yield

    def _taken(self, values: Any, calls: int, inputs: Any, begin: int) -> list[Any]:
        taken: list[Any] = []
        whole = calls & (calls - 1) == 0
        for number, tensor in self._tensors(values) if self.clean or whole else ():
            if number >= begin:
                memory, total = self._memory(tensor), None
                if inputs is not None and self.clean and tensor.is_floating_point():
                    written = memory[1] is None or all(memory != each[3] for each in inputs)
                    total = tensor.sum() if written else None
                summary = self._summary(tensor, inputs is None and calls < 2) if whole else None
                taken.append((number, total, summary, memory, weakref.ref(tensor)))
        return taken

    def _memory(self, tensor: Any) -> tuple[int, int | None]:
        return tensor.untyped_storage().data_ptr(), None if tensor.is_inference() else tensor._version

    def keep(self, case: Any, name: str, taken: list[Any], inputs: Any = ()) -> None:
        """What was taken belongs to the inputs ("in") or the results ("out") of this case."""
        if case.number < 0:
            return
        for number, total, summary, *_ in taken:
            if total is not None:
                self.sums.append((case, total, inputs))
            if summary is not None:
                self.pending.append((case, f"{name}{number}", summary))

    def _tensors(self, values: Any) -> Iterator[tuple[int, Any]]:
        """The tensors that can be summarised, with their numbers in the case."""
        seen: set[int] = set()
        number, count = -1, 0
        for value in values if isinstance(values, list | tuple) else (values,):
            for part in value if isinstance(value, list | tuple) else (value,):
                known = id(part) in seen and not self.names_repeats
                if not isinstance(part, self.torch.Tensor) or known:
                    continue
                seen.add(id(part))
                number += 1
                if count < MOST_TENSORS and part.dtype in self.kinds and self._has_elements(part):
                    count += 1
                    yield number, part

    def _has_elements(self, tensor: Any) -> bool:
        strided = is_plain(type(tensor)) and tensor.layout is self.torch.strided
        return strided and tensor.numel() and not tensor.is_meta

    def _summary(self, tensor: Any, structure: bool) -> Any:
        """The numbers of FIELDS, and those of `_structure` if they are wanted, for an input of a first
        call."""
        torch = self.torch
        low, high = torch.aminmax(tensor)
        nan = inf = 0.0
        # A CPU is asked at once, which saves passes over finite values. Another device would be waited for.
        on_host = tensor.device.type == "cpu"
        finite = on_host and math.isfinite(float(low) - float(high))
        if tensor.is_floating_point() and not finite:
            nan, inf = torch.isnan(tensor).sum(), torch.isinf(tensor).sum()
            tensor = torch.nan_to_num(tensor, 0.0, 0.0, 0.0)
            low, high = torch.aminmax(tensor)
        some = self._some(tensor)
        zeros = (some.numel() - torch.count_nonzero(some)) * (tensor.numel() / some.numel())
        numbers = [low, high, nan, inf, zeros, float(tensor.numel())]
        numbers += self._structure(tensor, some) if structure else ()
        if on_host:
            return list(map(float, numbers))
        made = [torch.as_tensor(each, device=tensor.device) for each in numbers]
        return torch.stack([each.to(torch.float64) for each in made])

    def _some(self, tensor: Any) -> Any:
        """The tensor, or elements at equal distances along its longest axes."""
        while tensor.numel() > SAMPLE:
            axis = max(range(tensor.ndim), key=tensor.shape.__getitem__)
            step = min(tensor.shape[axis], -(-tensor.numel() // SAMPLE))
            tensor = tensor[(slice(None),) * axis + (slice(None, None, step),)]
        return tensor

    def _structure(self, tensor: Any, some: Any) -> Iterator[Any]:
        """Whether rows ascend, the number of distinct whole numbers, and for each axis the smallest and the
        largest of its slices' scales."""
        long = some is tensor and tensor.ndim and tensor.shape[-1] > 2
        yield (tensor[..., 1:] >= tensor[..., :-1]).all() if long else 0.0
        if tensor.is_floating_point():
            yield 0.0
            size = some.abs()
            for axis in range(some.ndim):
                others = [each for each in range(some.ndim) if each != axis]
                yield from self.torch.aminmax(size.amax(others) if others else size)
        elif some is tensor:
            ordered = tensor.flatten().sort().values
            yield ((ordered[1:] != ordered[:-1]).sum() + 1) / tensor.numel()
        else:
            yield 0.0

    def end_step(self) -> None:
        """Looks for the first NaN of the step that has ended."""
        sums, self.sums = self.sums, []
        with self.alone():
            at = self._first_nan([total for _, total, _ in sums])
            if at is not None:
                case, _, inputs = sums[at]
                self.clean = False
                self.found_nan(case, any(map(self._is_nan, inputs)))

    def _first_nan(self, totals: list[Any]) -> int | None:
        """The index of the first one that is NaN, on the first device that has one."""
        for device in {each.device for each in totals}:
            own = [at for at, each in enumerate(totals) if each.device == device]
            bad = self.torch.isnan(self.torch.stack([totals[at].to(self.torch.float64) for at in own]))
            if bad.any():
                return own[int(bad.nonzero()[0])]
        return None

    def _is_nan(self, taken: Any) -> bool:
        """Whether an input, which is what it was, has NaN."""
        *_, memory, found = taken
        tensor = found()
        same = tensor is not None and self._memory(tensor) == memory and tensor.is_floating_point()
        return same and bool(self.torch.isnan(tensor.sum()))

    def fetch(self) -> None:
        """Reads the pending numbers and joins them with those of earlier calls."""
        pending, self.pending = self.pending, []
        for case, name, numbers in pending:
            found = numbers if isinstance(numbers, list) else numbers.tolist()
            known = self.known.setdefault(case, {})
            old = known.get(name)
            if old is not None:
                sums = [ours + theirs for ours, theirs in zip(found[2:6], old[2:6], strict=True)]
                found = [min(found[0], old[0]), max(found[1], old[1]), *sums, *old[6:]]
            known[name] = found
            case.written = -1  # its note is to be written again

    def of(self, case: Any) -> dict[str, Any]:
        """What is known of a case, as a part of its note."""
        named = {name: self._named(each) for name, each in self.known.get(case, {}).items()}
        return {"values": named} if named else {}

    def _named(self, numbers: list[Any]) -> dict[str, Any]:
        low, high, *counts = numbers[:6]
        found = dict(zip(FIELDS, (low, high, *map(round, counts)), strict=True))
        if len(numbers) > 6:
            in_order, distinct, *scales = numbers[6:]
            found |= {"sorted": True} if in_order else {}
            found |= {"distinct": distinct} if distinct else {}
            axes = list(zip(scales[::2], scales[1::2], strict=True))
            found |= {"axes": axes} if len(axes) > 1 else {}
        return found
