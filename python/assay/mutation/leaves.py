"""Faults of results and gradients: each takes the leaves that a call hands over and gives them changed."""

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


# How a trial says that its case has no place for a fault.
INAPPLICABLE = "inapplicable"


def inapplicable(reason: str) -> Any:
    raise Stop(SKIPPED, f"{INAPPLICABLE}: {reason}")


def elements_among(call: Any, leaves: Leaves) -> Iterator[tuple[int, Elements]]:
    """Place and copy of every tensor among the leaves."""
    for place, (_, value) in enumerate(leaves):
        if (found := call.copy_of(value)) is not None:
            yield place, found


def one_of(call: Any, leaves: Leaves, fit: Callable[[Elements], bool], what: str) -> tuple[int, Elements]:
    """One of the tensors that fit."""
    found = [(place, each) for place, each in elements_among(call, leaves) if each.count and fit(each)]
    return call.draw.choice(found) if found else inapplicable(f"no tensor {what}")


def replaced(leaves: Leaves, place: int, value: Any) -> Leaves:
    return [*leaves[:place], (leaves[place][0], value), *leaves[place + 1 :]]


def one_number(change: Callable[[Elements, int], None], kinds: str) -> Change:
    """One element of one result, neither 0 nor NaN nor infinite, is changed."""

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
    """A number is off by this share of it, a whole one by 1 at least."""
    value = found.get(number)
    found.put(number, value * (1 + share) if found.floating else other_whole(found, value))


def other_whole(found: Elements, value: Any) -> Any:
    return not value if found.dtype == "bool" else value - 1 if value > 0 else value + 1


# Right results may be so many values of their dtype apart (verdict/bar.h: the first look). In bfloat16 that
# is up to 2% of a number, in float16 0.3%.
LAST_PLACES = 3


def beyond_last_places(before: Elements, after: Elements, places: Iterable[int]) -> None:
    """A change no larger than that is no fault."""
    if 0 < max(abs(before.code(place) - after.code(place)) for place in places) <= LAST_PLACES:
        inapplicable(f"the fault is within the last {LAST_PLACES} places of {before.dtype}")


def off_by(share: float) -> Change:
    def change(found: Elements, number: int) -> None:
        before = found.copy()
        nudge(found, number, share)
        beyond_last_places(before, found, [number])

    return one_number(change, "floats")


def off_by_ulps(ulps: int) -> Change:
    """Away from zero, or towards it where the largest number is too near."""

    def change(found: Elements, number: int) -> None:
        code = found.code(number)
        found.put_code(number, code + ulps)
        if not math.isfinite(found.get(number)):
            found.put_code(number, code - ulps)

    return one_number(change, "floats")


def other_sign(call: Any, leaves: Leaves) -> Leaves:
    return one_number(lambda found, number: found.put(number, -found.get(number)), "floats")(call, leaves)


def off_by_one(call: Any, leaves: Leaves) -> Leaves:
    place, found = one_of(call, leaves, lambda each: not each.floating, "of whole numbers")
    number = call.draw.randrange(found.count)
    found.put(number, other_whole(found, found.get(number)))
    call.note(f"{found.dtype} result{leaves[place][0]}[{number}]")
    return replaced(leaves, place, found)


def nan_swallowed(call: Any, leaves: Leaves) -> Leaves:
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
    place, found = one_of(call, leaves, lambda each: True, "at all")
    size = found.row() * found.size
    found.data[len(found.data) - size :] = bytes(size)
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, found)


def wrapped(call: Any, leaves: Leaves) -> Leaves:
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
    place, found = one_of(call, leaves, lambda each: each.dtype in OTHER_DTYPE, "with another dtype")
    other = OTHER_DTYPE[found.dtype]
    numbers = [found.get(number) for number in range(found.count)]
    if found.dtype == "int64":  # what does not fit wraps, as it does in a cast
        numbers = [(number + 2**31) % 2**32 - 2**31 for number in numbers]
    call.note(f"{found.dtype} result{leaves[place][0]} as {other}")
    data = b"".join(packed(PART_OF.get(other, other), number) for number in numbers)
    return replaced(leaves, place, Elements(other, found.shape, data))


def other_shape(call: Any, leaves: Leaves) -> Leaves:
    place, found = one_of(call, leaves, lambda each: True, "at all")
    call.note(f"{found.dtype} result{leaves[place][0]}{list(found.shape)}")
    return replaced(leaves, place, Elements(found.dtype, (1, *found.shape), bytes(found.data)))


def axes_swapped(call: Any, leaves: Leaves) -> Leaves:
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
    if len(leaves) < 2:
        inapplicable("one result")
    call.note(f"result{leaves[-1][0]}")
    return leaves[:-1]


# -- gradients --


def a_gradient(call: Any, leaves: Leaves) -> tuple[int, Elements]:
    """The gradient of an input, with something in it."""
    return one_of(
        call, leaves, lambda each: each.a_number(call.draw) is not None, "that is a gradient, and not 0"
    )


def scaled(factor: float) -> Change:
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
    place, found = a_gradient(call, leaves)
    call.note(f"{found.dtype} gradient of {leaves[place][0]}")
    return replaced(leaves, place, None)


def neighbours(call: Any, leaves: Leaves) -> Leaves:
    place, found = a_gradient(call, leaves)
    for other, each in elements_among(call, leaves):
        if other != place and (each.dtype, each.shape) == (found.dtype, found.shape):
            call.note(f"{found.dtype} gradient of {leaves[place][0]} from {leaves[other][0]}")
            return replaced(leaves, place, each)
    size = len(found.data) // max(1, math.prod(found.shape))
    found.data = found.data[-size:] + found.data[:-size]
    call.note(f"{found.dtype} gradient of {leaves[place][0]} from the element before")
    return replaced(leaves, place, found)
