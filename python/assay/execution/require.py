"""Batch invariance: require=rows=bits,chunks=bits. A call raises NotInvariant if parts of its batch differ.

    rows      single rows of the batch
    batches   its first 1, 2, 3, … rows
    position  the batch rotated, so that each row lies elsewhere
    padding   the batch with more rows behind it
    chunks    parts of the sequence, the axis behind the batch (or the rows, without one); for causal
              attention parts of the query, with keys and values up to their end
    cache     the last query of causal attention, with all keys and values

Results are compared, and gradients of the tensors that are cut, under one upstream gradient. What differs by
more than rounding has no batch there: nothing is compared. Without any comparison the case is skipped.
"""

from collections.abc import Callable, Iterator
from typing import Any

from assay.execution import Function, Plain
from assay.frameworks import Framework
from assay.registry import changes_input
from assay.relations import Operations, not_here, replaced
from assay.wire import refuse

WAYS = ("rows", "batches", "position", "padding", "chunks", "cache")
WORDS = ("bits", "rounding")
SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256)  # of parts of a batch
MOST_PARTS = 8  # rows or chunks, evenly chosen
ANOTHER = 1 << 60  # ulps of a result of another meaning
ULPS = 64  # of the largest element: what `rounding` allows
UPSTREAM = 0.5


class NotInvariant(Exception):
    """Which parts of a batch give other results."""


class Way(Plain):
    """Checks each call, and returns its result."""

    takes_setting = True

    def __init__(self, framework: Framework, setting: str = "") -> None:
        super().__init__(framework, setting)
        self.wanted = dict(part.partition("=")[::2] for part in setting.split(","))
        for name, word in self.wanted.items():
            if name not in WAYS or word not in WORDS:
                refuse(f"require takes {', '.join(WAYS)} with {' or '.join(WORDS)}, not {name}={word}")
        if framework.name != "torch":
            refuse("batch invariance is required of PyTorch's functions only")

    def wrap(self, function: Function, api: str) -> Function:
        """The function with the checks."""
        operations = Operations(self.framework)

        def run(*args: Any, **kwargs: Any) -> Any:
            if changes_input(api) or kwargs.get("out") is not None:
                raise not_here("the call changes its arguments")
            check = Check(operations, function, (args, kwargs))
            found = [line for name, word in self.wanted.items() for line in check.differing(name, word)]
            if found:
                raise NotInvariant("; ".join(found))
            if not check.compared:
                raise not_here("the call has no batch along its first axis")
            return check.result

        return run


class Part:
    """One way to call for a part of a batch: `cut` changes a tensor, `kept` is that part of a result."""

    def __init__(self, name: str, cut: Callable[[Any], Any], kept: Callable[[Any], Any], back: Any = None):
        self.name, self.cut, self.kept = name, cut, kept
        self.back = back or (lambda tensor: tensor)  # of the part's own result


class Check:
    """The checks of one call."""

    def __init__(self, operations: Operations, function: Function, given: Any) -> None:
        self.operations, self.function, self.given = operations, function, given
        self.torch = operations.module
        self.tensors = [each for each in operations.tensors(given) if len(each.shape)]
        if not self.tensors:
            raise not_here("there is no tensor")
        self.compared = 0
        with self.torch.no_grad():
            self.result = function(*given[0], **given[1])

    def differing(self, way: str, word: str) -> Iterator[str]:
        """A line for the way, if some of its parts differ."""
        first, axis = self.tensors[0], 0
        if way in ("chunks", "cache"):
            causal = self._causal()
            if causal is not None or way == "cache":
                yield from self._told(way, word, self._of_attention(way, causal) if causal else [])
                return
            axis = 1 if len(first.shape) > 2 else 0
        extent = first.shape[axis]
        alike = [each for each in self.tensors if len(each.shape) > axis and each.shape[axis] == extent]
        for group in (alike, [first])[: 1 + (len(alike) > 1)]:
            before = self.compared
            yield from self._told(way, word, self._compared(self._parts(way, axis, extent), group))
            if self.compared > before:
                return

    def _told(self, way: str, word: str, seen: Any) -> Iterator[str]:
        worst = [line for line, ulps in seen if ulps and (word == "bits" or ulps > ULPS)]
        if worst:
            more = f" and {len(worst) - 1} more" if len(worst) > 1 else ""
            yield f"{way}={word}: {worst[0]}{more}"

    def _parts(self, way: str, axis: int, extent: int) -> Iterator[Part]:
        torch = self.torch

        def part(name: str, start: int, count: int) -> Part:
            return Part(name, lambda x: x.narrow(axis, start, count), lambda x: x.narrow(axis, start, count))

        step = max(1, -(-extent // MOST_PARTS))
        if way == "rows" and extent > 1:
            for row in {*range(0, extent, step), extent - 1}:
                yield part(f"row {row} alone", row, 1)
        elif way == "batches":
            for size in (size for size in SIZES if size < extent):
                yield part(f"a batch of {size}", 0, size)
        elif way == "chunks" and extent > 1:
            for start in range(0, extent, step):
                yield part(
                    f"positions {start} to {min(start + step, extent) - 1}", start, min(step, extent - start)
                )
        elif way == "position" and extent > 1:
            shift = extent // 3 | 1  # also of even rows to odd places
            yield Part(
                f"rotated by {shift}", lambda x: torch.roll(x, shift, axis), lambda x: x,
                lambda x: torch.roll(x, -shift, axis),
            )  # fmt: skip
        elif way == "padding":
            for more in (1, 7, extent):
                yield Part(
                    f"{more} more rows",
                    lambda x, more=more: torch.cat([x, x.narrow(axis, 0, min(more, extent))], axis),
                    lambda x: x,
                    lambda x: x.narrow(axis, 0, extent),
                )

    def _call(self, by: dict[int, Any], cut: list[Any]) -> tuple[list[Any], list[Any]]:
        """Results, and gradients of the tensors in `cut`, none if there are none."""
        with self.torch.enable_grad():
            args, kwargs = replaced(self.given, by)
            leaves = self.operations.leaves(self.function(*args, **kwargs))
            outputs = [each for each in leaves if each.requires_grad]
            wanted = [each for each in cut if each.requires_grad]
            if not outputs or not wanted:
                return [each.detach() for each in leaves], []
            upstream = [self.torch.full_like(each, UPSTREAM) for each in outputs]
            found = self.torch.autograd.grad(outputs, wanted, upstream, allow_unused=True)
        return [each.detach() for each in leaves], [each for each in found if each is not None]

    def _leaf(self, tensor: Any) -> Any:
        return tensor.detach().clone().requires_grad_(tensor.is_floating_point())

    def _compared(self, parts: Iterator[Part], group: list[Any]) -> list[tuple[str, int]]:
        whole = [self._leaf(each) for each in group]
        known = self._call(dict(zip(map(id, group), whole, strict=True)), whole)
        seen: list[tuple[str, int]] = []
        for part in parts:
            cut = [self._leaf(part.cut(each)) for each in group]
            try:
                found = self._call(dict(zip(map(id, group), cut, strict=True)), cut)
                pairs = [
                    (f"{kind} of {part.name}", part.back(left), part.kept(right))
                    for kind, lefts, rights in zip(("the result", "the gradient"), found, known, strict=True)
                    for left, right in zip(lefts, rights, strict=True)
                ]
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
                continue  # its other arguments do not fit a part
            seen += self._differences(pairs)
        # Most parts of a call without a batch are something else altogether.
        if 2 * sum(ulps == ANOTHER for _, ulps in seen) > len(seen):
            return []
        self.compared += len(seen)
        return seen

    def _differences(self, pairs: list[tuple[str, Any, Any]]) -> Iterator[tuple[str, int]]:
        """A line and the distance in ulps for each pair of results of the same meaning."""
        for name, left, right in pairs:
            if not self.operations.alike(left, right):
                yield f"{name} is another one altogether", ANOTHER
                continue
            differs = (left != right) & ~((left != left) & (right != right))
            if not bool(differs.any()):
                yield name, 0
                continue
            a, b = left[differs].double(), right[differs].double()
            unit = self.torch.finfo(right.dtype).eps * right.double().abs().nan_to_num(0.0, 0.0, 0.0).max()
            ulps = max(1, round(float((a - b).abs().max() / unit))) if float(unit) else 1
            share = f"{int(differs.sum())} of {differs.numel()} elements"
            yield f"{name} differs in {share} by up to {ulps} ulps of the largest", ulps

    def _causal(self) -> list[Any] | None:
        """Query, key and value of causal attention over one sequence."""
        tensors = self.tensors[:3]
        same = len(tensors) == 3 and len({each.shape[-2] for each in tensors if len(each.shape) > 2}) == 1
        return tensors if same and self.given[1].get("is_causal") is True else None

    def _of_attention(self, way: str, causal: list[Any]) -> Iterator[tuple[str, int]]:
        query, key, value = causal
        length = query.shape[-2]
        step = 1 if way == "cache" else max(1, -(-length // MOST_PARTS))
        with self.torch.no_grad():
            for start in [length - 1] if way == "cache" else range(0, length, step):
                end = min(start + step, length)
                by = {id(each): each[..., :end, :] for each in (key, value)}
                by[id(query)] = query[..., start:end, :]
                args, kwargs = replaced(self.given, by)
                kwargs = {**kwargs, "is_causal": False}
                if end - start > 1:
                    ones = self.torch.ones(end - start, end, dtype=self.torch.bool, device=query.device)
                    kwargs["attn_mask"] = ones.tril(start)
                found = self.function(*args, **kwargs)
                name = f"positions {start} to {end - 1}"
                self.compared += 1
                yield from self._differences([(name, found, self.result[..., start:end, :])])
