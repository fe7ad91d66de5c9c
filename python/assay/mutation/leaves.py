"""Faults in results and gradients: functions from the leaves of a call to changed leaves."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from assay.mutation.elements import PART_OF, Elements, packed
from assay.wire import SKIPPED, Stop

Leaves = list[tuple[str, Any]]
Change = Callable[[Any, Leaves], Leaves]

OTHER_DTYPE = {
    "bool": "uint8", "int8": "int32", "int16": "int32", "int32": "int64", "int64": "int32", "uint8": "int32",
    "float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float32",
    "complex64": "complex128", "complex128": "complex64",
}  # fmt: skip


# The prefix of the message of an inapplicable fault; src/verdict/mutants.cc reads it.
INAPPLICABLE = "inapplicable"


def inapplicable(reason: str) -> Any:
    """Raises Stop: the case offers no place for the fault."""
    raise Stop(SKIPPED, f"{INAPPLICABLE}: {reason}")


def elements_among(call: Any, leaves: Leaves) -> Iterator[tuple[int, Elements]]:
    """The position and a copy of every tensor among the leaves."""
    for place, (_, value) in enumerate(leaves):
        if (found := call.copy_of(value)) is not None:
            yield place, found


def one_of(call: Any, leaves: Leaves, fit: Callable[[Elements], bool], what: str) -> tuple[int, Elements]:
    """A random tensor that fits. Raises Stop if none does."""
    found = [(place, each) for place, each in elements_among(call, leaves) if each.count and fit(each)]
    return call.draw.choice(found) if found else inapplicable(f"no tensor {what}")


def replaced(leaves: Leaves, place: int, value: Any) -> Leaves:
    """The leaves with another value at this position."""
    return [*leaves[:place], (leaves[place][0], value), *leaves[place + 1 :]]


def one_number(change: Callable[[Elements, int], None], kinds: str) -> Change:
    """A fault that changes one random finite number other than 0 of one result."""

    def fault(call: Any, leaves: Leaves) -> Leaves:
        def has_number(found: Elements) -> bool:
            return found.floating and found.a_number(call.draw) is not None

        place, found = one_of(call, leaves, has_number, f"of {kinds} with a number in it")
        number = found.a_number(call.draw)
        before = found.get(number)
        change(found, number)
        call.note(f"{found.dtype} result{leaves[place][0]}[{number}] {before!r} -> {found.get(number)!r}")
        return replaced(leaves, place, found)

    return fault


def nudge(found: Elements, number: int, share: float) -> None:
    """Changes a number by this share, or an integer by 1."""
    value = found.get(number)
    found.put(number, value * (1 + share) if found.floating else other_whole(found, value))


def other_whole(found: Elements, value: Any) -> Any:
    """The negated boolean, or the integer changed by 1 towards zero."""
    return not value if found.dtype == "bool" else value - 1 if value > 0 else value + 1


# Correct results may differ by this many representable values (verdict/bar.h). That is up to 2% of a number
# in bfloat16 and 0.3% in float16.
LAST_PLACES = 3


def beyond_last_places(before: Elements, after: Elements, places: Iterable[int]) -> None:
    """Raises Stop if the largest change is at most LAST_PLACES representable values."""
    if 0 < max(abs(before.code(place) - after.code(place)) for place in places) <= LAST_PLACES:
        inapplicable(f"the fault is within the last {LAST_PLACES} places of {before.dtype}")


def off_by(share: float) -> Change:
    """A fault: one number is off by this share."""

    def change(found: Elements, number: int) -> None:
        before = found.copy()
        nudge(found, number, share)
        beyond_last_places(before, found, [number])

    return one_number(change, "floats")


def off_by_ulps(ulps: int) -> Change:
    """A fault: one number is off by this many ulps, away from zero unless that overflows."""

    def change(found: Elements, number: int) -> None:
        code = found.code(number)
        found.put_code(number, code + ulps)
        if not math.isfinite(found.get(number)):
            found.put_code(number, code - ulps)

    return one_number(change, "floats")


def other_sign(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one number has the other sign."""
    return one_number(lambda found, number: found.put(number, -found.get(number)), "floats")(call, leaves)


def off_by_one(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one integer is off by 1, or a boolean is inverted."""
    place, found = one_of(call, leaves, lambda each: not each.floating, "of whole numbers")
    number = call.draw.randrange(found.count)
    found.put(number, other_whole(found, found.get(number)))
    call.note(f"{found.dtype} result{leaves[place][0]}[{number}]")
    return replaced(leaves, place, found)


def nan_swallowed(call: Any, leaves: Leaves) -> Leaves:
    """A fault: every NaN is 0."""
    changed = leaves
    for place, found in elements_among(call, leaves):
        numbers = [
            number for number in range(found.count) if found.floating and math.isnan(found.get(number))
        ]
        if not numbers:
            continue
        call.note(f"{found.dtype} result{leaves[place][0]}, {len(numbers)} of them")
        for number in numbers:
            found.put(number, 0.0)
        changed = replaced(changed, place, found)
    return changed if call.planted else inapplicable("no NaN")


def last_row_missing(call: Any, leaves: Leaves) -> Leaves:
    """A fault: the last row of one result is zeros."""
    place, found = one_of(call, leaves, lambda each: True, "at all")
    size = found.row() * found.size
    found.data[len(found.data) - size :] = bytes(size)
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, found)


def row_repeated(call: Any, leaves: Leaves) -> Leaves:
    """A fault: the second row of one result is the first."""
    place, found = one_of(call, leaves, lambda each: each.count >= 2 * each.row(), "of two rows")
    size = found.row() * found.size
    found.data[size : 2 * size] = found.data[:size]
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, found)


def wrapped(call: Any, leaves: Leaves) -> Leaves:
    """A fault: int64 results wrap at 2^31."""
    changed = leaves
    for place, found in elements_among(call, leaves):
        if found.dtype != "int64":
            continue
        call.note(f"int64 result{leaves[place][0]}")
        for number in range(found.count):
            found.put(number, (found.get(number) + 2**31) % 2**32 - 2**31)
        changed = replaced(changed, place, found)
    return changed if call.planted else inapplicable("no int64")


def other_dtype(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one result has another dtype."""
    place, found = one_of(call, leaves, lambda each: each.dtype in OTHER_DTYPE, "with another dtype")
    other = OTHER_DTYPE[found.dtype]
    numbers = [found.get(number) for number in range(found.count)]
    if found.dtype == "int64":  # wraps as in a cast
        numbers = [(number + 2**31) % 2**32 - 2**31 for number in numbers]
    call.note(f"{found.dtype} result{leaves[place][0]} as {other}")
    data = b"".join(packed(PART_OF.get(other, other), number) for number in numbers)
    return replaced(leaves, place, Elements(other, found.shape, data))


def other_shape(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one result has a leading axis of extent 1."""
    place, found = one_of(call, leaves, lambda each: True, "at all")
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, Elements(found.dtype, (1, *found.shape), bytes(found.data)))


def axes_swapped(call: Any, leaves: Leaves) -> Leaves:
    """A fault: the last two axes of one result are swapped."""
    place, found = one_of(call, leaves, lambda each: len(each.shape) > 1, "with two axes")
    *outer, rows, columns = found.shape
    size = len(found.data) // max(1, math.prod(found.shape))
    turned = bytearray()
    for first in range(0, len(found.data), size * rows * columns):
        for column in range(columns):
            for row in range(rows):
                at = first + size * (row * columns + column)
                turned += found.data[at : at + size]
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, Elements(found.dtype, (*outer, columns, rows), bytes(turned)))


def output_lost(call: Any, leaves: Leaves) -> Leaves:
    """A fault: the last result is missing."""
    if len(leaves) < 2:
        inapplicable("one result")
    call.note(f"result{leaves[-1][0]}")
    return leaves[:-1]


# -- gradients --


def a_gradient(call: Any, leaves: Leaves) -> tuple[int, Elements]:
    """A random gradient that is not 0 everywhere."""
    return one_of(
        call, leaves, lambda each: each.a_number(call.draw) is not None, "that is a gradient, and not 0"
    )


def scaled(factor: float) -> Change:
    """A fault: one gradient is multiplied by this factor."""

    def fault(call: Any, leaves: Leaves) -> Leaves:
        place, found = a_gradient(call, leaves)
        before = found.copy()
        for number in range(found.count):
            found.put(number, found.get(number) * factor)
        beyond_last_places(before, found, range(found.count))
        call.note(f"{found.dtype} gradient of {leaves[place][0]}")
        return replaced(leaves, place, found)

    return fault


def gradient_lost(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one gradient is None."""
    place, found = a_gradient(call, leaves)
    call.note(f"{found.dtype} gradient of {leaves[place][0]}")
    return replaced(leaves, place, None)


def neighbours(call: Any, leaves: Leaves) -> Leaves:
    """A fault: one gradient is another input's, or is shifted by one element."""
    place, found = a_gradient(call, leaves)
    for other, each in elements_among(call, leaves):
        if other != place and (each.dtype, each.shape) == (found.dtype, found.shape):
            call.note(f"{found.dtype} gradient of {leaves[place][0]} from {leaves[other][0]}")
            return replaced(leaves, place, each)
    size = len(found.data) // max(1, math.prod(found.shape))
    found.data = found.data[-size:] + found.data[:-size]
    call.note(f"{found.dtype} gradient of {leaves[place][0]} from the element before")
    return replaced(leaves, place, found)
