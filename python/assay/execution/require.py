"""Batch invariance: require=rows=bits,chunks=bits. A call raises NotInvariant if parts of its batch differ.

    rows      single rows of the batch
    batches   1, 2, 3, … 256 rows: the first ones, and then all of them repeated
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
from assay.relations import ALIKE, Operations, not_here, replaced
from assay.wire import refuse

WAYS = ("rows", "batches", "position", "padding", "chunks", "cache")
WORDS = ("bits", "rounding")
SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256)
MOST_PARTS = 8  # rows or chunks, evenly chosen
MOST_ELEMENTS = 1 << 24  # of a tensor with repeated rows
MOST_TURNS = 4
SMALL = 1 << 20  # elements of a tensor up to which several values are tried: roundings may coincide
FEW = 4  # rows of a batch that is tried at several places
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
    """A part of a batch. `text` is Python for it, {} is a tensor; `back` takes it out of the result."""

    def __init__(self, text: str, cut: Callable[[Any], Any], kept: Any = None, back: Any = None) -> None:
        self.text, self.cut = text, cut
        self.kept = kept or cut
        self.back = back or (lambda tensor: tensor)


def sliced(axis: int, start: int, end: int) -> Part:
    """The rows from start to end; axis -2 is that of the positions of attention."""
    before = "..., " if axis < 0 else ":, " * axis
    text = f"{{}}[{before}{start}:{end}{', :' * (axis < 0)}]"
    return Part(text, lambda tensor: tensor.narrow(axis, start, end - start))


class Check:
    """The checks of one call."""

    def __init__(self, operations: Operations, function: Function, given: Any) -> None:
        self.operations, self.function, self.given = operations, function, given
        self.torch = operations.module
        every = operations.tensors(given)
        self.names = {id(each): f"x{place}" for place, each in enumerate(every)}
        self.tensors = [each for each in every if len(each.shape)]
        if not self.tensors:
            raise not_here("there is no tensor")
        self.compared = 0
        with self.torch.no_grad():
            self.result = function(*given[0], **given[1])

    def differing(self, way: str, word: str) -> Iterator[str]:
        """A line for the way, if some of its parts differ."""
        first = self.tensors[0]
        causal = self._causal() if way in ("chunks", "cache") else None
        if causal is not None:
            seen = self._of_attention(way, causal)
        elif way == "cache":
            return
        else:
            axis = int(way == "chunks" and len(first.shape) > 2)
            extent = first.shape[axis]
            alike = [each for each in self.tensors if len(each.shape) > axis and each.shape[axis] == extent]
            for group in (alike, [first])[: 1 + (len(alike) > 1)]:
                parts = list(self._parts(way, axis, extent))
                turns = min(MOST_TURNS, 1 + SMALL // max(1, first.numel()))
                if seen := [each for turn in range(turns) for each in self._compared(parts, group, turn)]:
                    break
        self.compared += len(seen)
        worst = [line for line, ulps in seen if ulps and (word == "bits" or ulps > ULPS)]
        if worst:
            more = f" and {len(worst) - 1} more" if len(worst) > 1 else ""
            yield f"{way}={word}: {worst[0]}{more}"

    def _parts(self, way: str, axis: int, extent: int) -> Iterator[Part]:
        step = max(1, -(-extent // MOST_PARTS))
        if way == "rows" and extent > 1:
            for row in sorted({*range(0, extent, step), extent - 1}):
                yield sliced(axis, row, row + 1)
        elif way == "batches":
            most = MOST_ELEMENTS // max(1, self.tensors[0].numel() // max(1, extent))
            for size in SIZES:
                if size < extent:
                    for start in range(0, extent - size + 1, max(size, step)) if size <= FEW else (0,):
                        yield sliced(axis, start, start + size)
                elif extent < size <= most:
                    yield self._longer(extent, size)
        elif way == "chunks" and extent > 1:
            for start in range(0, extent, step):
                yield sliced(axis, start, min(start + step, extent))
        elif way == "position" and extent > 1:
            shift = extent // 3 | 1  # also of even rows to odd places
            yield Part(f"{{}}.roll({shift}, {axis})", lambda tensor: tensor.roll(shift, axis))
        elif way == "padding" and extent:
            for more in (1, 7, extent):
                yield self._longer(extent, extent + more)

    def _longer(self, extent: int, size: int) -> Part:
        """All rows, repeated until there are `size` of them."""
        times = -(-size // max(1, extent))
        return Part(
            f"torch.cat([{{}}] * {times})[:{size}]",
            lambda tensor: self.torch.cat([tensor] * times)[:size],
            lambda tensor: tensor,
            lambda tensor: tensor[:extent],
        )

    def _call(self, by: dict[int, Any], cut: list[Any], **others: Any) -> tuple[list[Any], list[Any]]:
        """Results, and gradients of the tensors in `cut`, none if there are none."""
        with self.torch.enable_grad():
            args, kwargs = replaced(self.given, by)
            leaves = self.operations.leaves(self.function(*args, **{**kwargs, **others}))
            outputs = [each for each in leaves if each.requires_grad]
            wanted = [each for each in cut if each.requires_grad]
            if not outputs or not wanted:
                return [each.detach() for each in leaves], []
            upstream = [self.torch.full_like(each, UPSTREAM) for each in outputs]
            found = self.torch.autograd.grad(outputs, wanted, upstream, allow_unused=True)
        return [each.detach() for each in leaves], [each for each in found if each is not None]

    def _leaf(self, tensor: Any) -> Any:
        return tensor.detach().clone().requires_grad_(tensor.is_floating_point())

    def _compared(self, parts: list[Part], group: list[Any], turn: int) -> list[tuple[str, int]]:
        """The comparisons of all parts; the values are rotated by `turn` along the last axis."""
        turned = [each.roll(turn, -1) for each in group]
        whole = [self._leaf(each) for each in turned]
        known = self._call(dict(zip(map(id, group), whole, strict=True)), whole)
        seen: list[tuple[str, int]] = []
        for part in parts:
            cut = [self._leaf(part.cut(each)) for each in turned]
            name = ", ".join(part.text.format(self.names[id(each)]) for each in group)
            try:
                found = self._call(dict(zip(map(id, group), cut, strict=True)), cut)
                seen += self._differences(part, name, found, known)
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
                continue  # its other arguments do not fit a part
        # Most parts of a call without a batch are something else altogether.
        return [] if 2 * sum(ulps == ANOTHER for _, ulps in seen) > len(seen) else seen

    def _differences(self, part: Part, name: str, found: Any, known: Any) -> list[tuple[str, int]]:
        """A line and the distance in ulps for each pair of results, or gradients, of the same meaning."""
        return [
            self._difference(f"{kind} for {name}", part.back(left), part.kept(right), right)
            for kind, lefts, rights in zip(("the result", "the gradient"), found, known, strict=True)
            for left, right in zip(lefts, rights, strict=True)
        ]

    def _difference(self, name: str, left: Any, right: Any, whole: Any) -> tuple[str, int]:
        torch = self.torch
        if left.shape == right.shape and torch.equal(left, right):
            return name, 0
        if left.shape != right.shape or left.dtype != right.dtype:
            return f"{name} is another one altogether", ANOTHER
        differs = (left != right) & ~((left != left) & (right != right))
        if not bool(differs.any()):
            return name, 0
        apart = (left[differs].to(torch.complex128) - right[differs]).abs().nan_to_num(torch.inf).max()
        largest = whole.abs().double().nan_to_num(0.0, 0.0, 0.0).max()
        floating = right.is_floating_point() or right.is_complex()
        if not floating or apart > ALIKE * largest:
            return f"{name} is another one altogether", ANOTHER
        ulps = max(1, round(float(apart / (torch.finfo(right.dtype).eps * largest))))
        share = f"{int(differs.sum())} of {differs.numel()} elements"
        return f"{name} differs in {share} by up to {ulps} ulps of the largest", ulps

    def _causal(self) -> list[Any] | None:
        """Query, key and value of causal attention over one sequence."""
        tensors = self.tensors[:3]
        same = len(tensors) == 3 and len({each.shape[-2] for each in tensors if len(each.shape) > 2}) == 1
        return tensors if same and self.given[1].get("is_causal") is True else None

    def _of_attention(self, way: str, causal: list[Any]) -> list[tuple[str, int]]:
        """Parts of the query with keys and values up to their end. Of gradients, that of the query."""
        length = causal[0].shape[-2]
        step = 1 if way == "cache" else max(1, -(-length // MOST_PARTS))
        whole = self._leaf(causal[0])
        known = self._call({id(causal[0]): whole}, [whole])
        seen = []
        for start in [length - 1] if way == "cache" else range(0, length, step):
            end = min(start + step, length)
            parts = [sliced(-2, start, end), sliced(-2, 0, end), sliced(-2, 0, end)]
            cut = [self._leaf(part.cut(each)) for part, each in zip(parts, causal, strict=True)]
            ones = self.torch.ones(end - start, end, dtype=self.torch.bool, device=whole.device)
            mask = {"attn_mask": ones.tril(start)} if end - start > 1 else {}
            by = {id(each): new for each, new in zip(causal, cut, strict=True)}
            found = self._call(by, cut[:1], is_causal=False, **mask)
            names = zip(parts, causal, strict=True)
            name = ", ".join(part.text.format(self.names[id(each)]) for part, each in names)
            seen += self._differences(parts[0], name, found, known)
        return seen
