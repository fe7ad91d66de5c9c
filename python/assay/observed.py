"""The value regime `observed`: tensors are drawn by their summaries in a capture.

A summary keeps range, zeros, order, distinct numbers and scales by axis. What a range cannot keep comes from
the API's own rules: indices, shapes, structured matrices. NaN and infinities come where the API is judged
with them. A case that the capture lacks, such as a smaller one, has the values of another call of its API.
"""

import functools
import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.capture import corpus
from assay.regimes import OBSERVED, Skip, is_free, skip_of, specs_in
from assay.rules import Fill, Literal, Sample
from assay.shared import DISTINCT, ENDS, INTEGERS, UNIFORM
from assay.shorthand import LITERAL_LIMIT
from assay.spec import FLOATING, INTEGER, DtypeName, PlaceName, TensorSpec
from assay.wire import Job

Axes = tuple[tuple[float, float], ...]


class Values(NamedTuple):
    """What a capture says of a tensor (assay.capture.summaries)."""

    min: float
    max: float
    nan: int
    inf: int
    zero: int
    count: int
    sorted: bool = False  # each row ascends
    distinct: float = 0  # whole numbers, as a share of the elements; 0: not known
    axes: Axes = ()  # by axis the smallest and largest scale of a slice


OCTAVES = 12.0  # powers of two over which half of the numbers are spread, below the largest
UNEVEN, MOST_UNEVEN = 4.0, 1e6  # ratios of scales from which an axis counts, and that are drawn
NO_VALUES = "the capture has no values of this call: assay capture --summaries"


def values_of(native: Any, job: Job) -> dict[int, Values]:
    """What the capture says of the tensors of a case, by their numbers; empty if it says nothing."""
    if job.values != OBSERVED:
        return {}
    known = _calls(native, job.settings.observed)
    asked = job.args, job.kwargs, job.construction
    return known.get((job.api, repr(asked))) or known.get((job.api, repr(_dtypes(asked)))) or {}


def skipped(entry: Any, named: Mapping[str, Any], values: dict[int, Values]) -> Skip | None:
    """Why a case does not run under the regime; None if it runs."""
    if entry is None or entry.kind:
        return Skip("")
    drawn = skip_of(entry, named, "wide") if entry.family in ("random", "dropout") else None
    return drawn or (None if values else Skip(NO_VALUES))


@functools.cache
def _calls(native: Any, file: str) -> dict[tuple[str, str], dict[int, Values]]:
    """The values of all calls of a capture, also by their tensors' dtypes alone; none of a file that is no
    capture."""
    try:
        with open(file, encoding="utf-8") as lines:
            _, cases = corpus.read(lines)
    except (OSError, ValueError, corpus.Damaged):
        return {}
    found: dict[tuple[str, str], dict[int, Values]] = {}
    for text, note in cases.items():
        try:
            values = {
                int(key[2:]): Values(**each | {"axes": tuple(map(tuple, each.get("axes", ())))})
                for key, each in note.get("values", {}).items()
                if key.startswith("in")
            }
            api, *asked = native.parse(text, TensorSpec, DtypeName, PlaceName)
        except (RuntimeError, TypeError, ValueError):  # no case, or fields of a newer assay
            continue
        if values:
            found[api, repr(tuple(asked))] = values
            found.setdefault((api, repr(_dtypes(asked))), values)
    return found


def _dtypes(asked: Any) -> list[str]:
    args, kwargs, _ = asked
    return [spec.dtype for spec in specs_in((*args, *kwargs.values()))]


def unusual(entry: Any, named: Mapping[str, Any], values: Mapping[int, Values]) -> str:
    """The regime of special numbers that these values have and that the API is judged under; empty if
    none."""
    for regime in ("nan", "infinity"):
        found = any(each.nan if regime == "nan" else each.inf for each in values.values())
        if found and skip_of(entry, named, regime) is None:
            return regime
    return ""


def drawn(
    usual: Fill | Literal | None, spec: TensorSpec, values: Values | None, seed: int, special: str
) -> Fill | Literal | Sample | None:
    """How a tensor is filled. `special` is the regime whose special numbers it may have."""
    if values is None or not spec.size or not values.count:
        return usual
    low, high = values.min, values.max
    if spec.dtype in FLOATING:
        if not is_free(usual) or spec.dtype.startswith("float8"):
            return usual
        if isinstance(usual, Fill) and usual.kind == DISTINCT:
            return usual._replace(low=low, high=high) if low < high else usual
        if spec.size > LITERAL_LIMIT:
            return Fill(UNIFORM, low, high, 0) if low < high else usual
        return Sample(_reals(spec.shape, values, f"{seed} {spec.index}", special))
    kind = usual.kind if isinstance(usual, Fill) else INTEGERS
    if spec.dtype not in (*INTEGER, "bool") or isinstance(usual, Literal) or kind not in (INTEGERS, ENDS):
        return usual
    if isinstance(usual, Fill):  # indices stay within what the call's shapes allow
        low, high = max(low, usual.low), min(high, usual.high - 1)
    if low > high:
        return usual
    if spec.size > LITERAL_LIMIT:
        return Fill(INTEGERS, low, high + 1, 0)
    return Sample(_whole(spec.shape, values._replace(min=low, max=high), f"{seed} {spec.index}"))


@functools.lru_cache(64)
def _reals(shape: tuple[int, ...], values: Values, seed: str, special: str) -> list[float]:
    """Numbers drawn evenly from the range; half of them are divided by a power of two below 2 ** OCTAVES."""
    draw = random.Random(seed)
    low, high = values.min, values.max
    found = []
    for scale in _scales(draw, shape, values.axes):
        value = low + draw.random() * (high - low)
        if draw.random() < 0.5:
            value = math.ldexp(value, -int(draw.random() * OCTAVES))
        zero = draw.random() * values.count < values.zero
        found.append(0.0 if zero else min(high, max(low, value * scale)))
    for value in (low, high):
        found[draw.randrange(len(found))] = value
    number = math.nan if special == "nan" else math.copysign(math.inf, low)
    share = {"": 0, "nan": values.nan}.get(special, values.inf) / values.count
    for place in draw.sample(range(len(found)), math.ceil(share * len(found))):
        found[place] = number
    return _in_order(found, shape, values)


def _scales(draw: random.Random, shape: tuple[int, ...], axes: Axes) -> list[float]:
    """A factor for each element: along the axis whose slices differ most in scale, one for each slice."""
    size = math.prod(shape)
    ratios = [high / max(low, 1e-300) for low, high in axes]
    worst = max(ratios, default=1.0)
    if worst < UNEVEN or len(ratios) != len(shape):
        return [1.0] * size
    axis = ratios.index(worst)
    inner = math.prod(shape[axis + 1 :])
    slices = [min(worst, MOST_UNEVEN) ** -draw.random() for _ in range(shape[axis])]
    return [slices[place // inner % len(slices)] for place in range(size)]


@functools.lru_cache(64)
def _whole(shape: tuple[int, ...], values: Values, seed: str) -> list[float]:
    """Whole numbers of the range."""
    draw, size = random.Random(seed), math.prod(shape)
    low, high = int(values.min), int(values.max)
    if values.distinct:
        numbers = draw.sample(range(low, high + 1), min(math.ceil(values.distinct * size), high - low + 1))
    else:
        zeros = values.zero if low <= 0 <= high else 0
        numbers = [
            0 if draw.random() * values.count < zeros else draw.randint(low, high) for _ in range(size)
        ]
    for place, end in enumerate((high, low)[: len(numbers)]):
        if end not in numbers:
            numbers[place] = end
    numbers += draw.choices(numbers, k=size - len(numbers))
    draw.shuffle(numbers)
    return _in_order(list(map(float, numbers)), shape, values)


def _in_order(found: list[float], shape: tuple[int, ...], values: Values) -> list[float]:
    """The numbers; each row in order if the program's were."""
    if values.sorted and shape:
        rows = range(0, len(found), shape[-1])
        found = [each for at in rows for each in sorted(found[at : at + shape[-1]])]
    return found
