"""What leaves each module, step by step, and where two runs differ in it (`--deep`). Inputs of the outermost
modules tell other data from a module that is wrong.

A line of the file is a boundary, in the order of the program: step, module, part, a checksum of all bits, and
smallest number, largest number and sum. They are computed on the device and fetched between steps.
"""

import atexit
import json
import math
import os
import weakref
from collections import Counter
from typing import Any

from assay.capture.recorder import Recorder, rank
from assay.capture.summaries import KINDS, is_plain

FAR = 1e-3  # a relative difference that is more than rounding
MOST_PENDING = 1000


class Boundaries:
    """The boundaries of one process, which are written to a file."""

    def __init__(self, torch: Any, recorder: Recorder, file: str) -> None:
        self.torch = torch
        self.recorder = recorder
        self.names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.pending: list[tuple[int, str, Any, Any]] = []
        self.file = open(f"{file}.{rank()}" if rank() else file, "w", encoding="utf-8")  # noqa: SIM115
        atexit.register(self.end_step)
        hooks = torch.nn.modules.module
        hooks.register_module_forward_pre_hook(self.before)
        hooks.register_module_forward_hook(self.after, always_call=True)
        self.inside = 0  # modules, one inside of the other, that run now

    def before(self, module: Any, inputs: Any) -> None:
        """The outermost module names those inside."""
        if self.torch.compiler.is_compiling():
            return
        if module not in self.names:
            for name, each in module.named_modules():
                self.names.setdefault(each, name or type(module).__name__)
        for number, part in enumerate(() if self.inside else inputs):
            self.take(f"{self.names[module]} input {number}", part)
        self.inside += 1

    def after(self, module: Any, _: Any, result: Any) -> None:
        """A module's results. Inside of torch.compile, whose graphs must not hold this, there are none."""
        if self.torch.compiler.is_compiling():
            return
        self.inside -= 1
        for number, part in enumerate(result if isinstance(result, list | tuple) else (result,)):
            self.take(f"{self.names.get(module, type(module).__name__)} {number}", part)

    def gradients(self, optimizer: Any) -> None:
        """The gradients that an optimizer has used."""
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        for number, each in enumerate(parameters):
            self.take(f"gradient of parameter {number} of {type(optimizer).__name__}", each.grad)

    def take(self, name: str, tensor: Any) -> None:
        """A boundary. Tensors without memory and those that a trace follows are none."""
        torch = self.torch
        if not is_plain(type(tensor)) or tensor.layout is not torch.strided or tensor.is_nested:
            return
        if str(tensor.dtype).removeprefix("torch.") not in KINDS or not tensor.numel():
            return
        followed = torch._C._get_tracing_state() or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        if self.recorder.chosen(self.recorder.step) and not tensor.is_meta and not followed:
            with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
                plain = tensor.detach().contiguous().flatten()
                bits = plain.view(
                    {1: torch.int8, 2: torch.int16, 4: torch.int32}.get(plain.itemsize, torch.int64)
                )
                wide = torch.int64 if len(bits) >> 31 or bits.itemsize == 8 else torch.int32
                bits = bits * torch.arange(1, len(bits) + 1, dtype=wide, device=bits.device)  # order matters
                numbers = [each.double() for each in (*torch.aminmax(plain), plain.sum(dtype=torch.float64))]
                self.pending.append((self.recorder.step, name, bits.sum(), torch.stack(numbers)))
            if len(self.pending) > MOST_PENDING:
                self.end_step()

    def end_step(self) -> None:
        """Writes what is pending."""
        pending, self.pending = self.pending, []
        with self.torch._C.DisableTorchFunction():
            for step, name, bits, numbers in pending:
                print(json.dumps([step, name, int(bits), *numbers.tolist()]), file=self.file)
        self.file.flush()


def read(path: str) -> dict[tuple[int, str, int], list[float]]:
    """The boundaries of a file in their order. Raises OSError and ValueError."""
    found: dict[tuple[int, str, int], list[float]] = {}
    seen = Counter[tuple[int, str]]()
    with open(path, encoding="utf-8") as file:
        for line in file:
            step, name, *numbers = json.loads(line)
            found[step, name, seen[step, name]] = numbers
            seen[step, name] += 1
    return found


def apart(one: list[float], other: list[float]) -> float:
    """The relative difference of two boundaries; 0 if their bits are equal."""
    if one[0] == other[0]:
        return 0.0
    pairs = list(zip(one[1:3], other[1:3], strict=True))  # the ranges
    if any(math.isfinite(left) != math.isfinite(right) for left, right in pairs):
        return math.inf
    scale = max((abs(each) for pair in pairs for each in pair if math.isfinite(each)), default=0.0) or 1.0
    return max(abs(left - right) / scale if math.isfinite(left) else 0.0 for left, right in pairs)


def compared(mine: str, theirs: str) -> tuple[list[str], bool]:
    """What two runs have in common, for a reader, and whether they differ. Later boundaries may agree again,
    so all are looked at."""
    new, old = read(mine), read(theirs)
    both = [key for key in new if key in old]
    if not both:
        raise ValueError(
            f"{os.path.basename(mine)} and {os.path.basename(theirs)} have no boundary in common"
        )
    found = [(apart(new[key], old[key]), new[key][0] != old[key][0], key) for key in both]
    differ = [key for _, other, key in found if other]
    alone = len(new) + len(old) - 2 * len(both)
    lines = [f"{len(differ)} of {len(both)} boundaries differ; {alone} are in one run only"]
    if differ:
        at = both.index(differ[0])
        again = sum(not other for _, other, _ in found[at:])
        lines.append(
            f"first: {_shown(differ[0], new, old)}; {at} before it agree bit for bit, {again} after it"
        )
    far = next((key for distance, _, key in found if distance > FAR), None)
    if far is not None:
        lines.append(f"first beyond rounding ({FAR:g}): {_shown(far, new, old)}")
    return lines, bool(differ)


def _shown(key: tuple[int, str, int], new: Any, old: Any) -> str:
    step, name, again = key
    mine, theirs = (f"[{each[key][1]:.9g}, {each[key][2]:.9g}]" for each in (new, old))
    call = f", call {again + 1}" if again else ""
    return f"step {step}, {name}{call}: {mine}, {theirs} in the other run"
