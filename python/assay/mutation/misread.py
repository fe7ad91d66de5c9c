"""Faults of a call that misreads its arguments or its generator."""

from collections.abc import Callable
from math import prod
from typing import Any

from assay.mutation.elements import Elements, write_back
from assay.mutation.leaves import inapplicable
from assay.results import SEQUENCE
from assay.rules import Fill
from assay.shared import ENDS

Changed = tuple[list[Any], dict[str, Any]]
Edit = Callable[[Any, Elements], str]


def edited(call: Any, value: Any, change: Edit) -> Any:
    """A copy of a tensor with a change, or the tensor itself if the change returns no words."""
    framework = call.framework
    if not isinstance(value, framework.tensor_type) or (found := call.copy_of(value)) is None:
        return value
    if not (words := change(call, found)):
        return value
    copy = framework.constant(framework.writable(value))
    write_back(framework, copy, found)
    call.note(words)
    return copy


def with_argument(args: list[Any], kwargs: dict[str, Any], place: int, name: str, value: Any) -> Changed:
    """The arguments with another value of the parameter of this position and name."""
    if place < len(args):
        return [*args[:place], value, *args[place + 1 :]], kwargs
    return args, {**kwargs, name: value}


def each_tensor(
    names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any], change: Callable[[str, int, Any], Any]
) -> Changed:
    """The arguments with each tensor changed, given the parameter's name and the tensor's number."""
    number = -1

    def visit(name: str, value: Any) -> Any:
        nonlocal number
        if isinstance(value, SEQUENCE):
            return type(value)(visit(name, part) for part in value)
        number += hasattr(value, "shape")
        return change(name, number, value)

    named = [*names, *[""] * len(args)]
    return [visit(name, arg) for name, arg in zip(named, args, strict=False)], {
        name: visit(name, arg) for name, arg in kwargs.items()
    }


def last_index(call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]) -> Changed:
    """The largest index is read as the one before it."""

    def change(of: Any, found: Elements) -> str:
        numbers = [found.get(place) for place in range(found.count)]
        for place, number in enumerate(numbers):
            if number == max(numbers):
                found.put(place, number - 1)
        return f"{max(numbers)} -> {max(numbers) - 1}"

    def visit(name: str, number: int, value: Any) -> Any:
        fill = call.fills.get(name)
        return edited(call, value, change) if fill is not None and fill.high - fill.low > 1 else value

    return each_tensor(names, args, kwargs, visit)


def index_fill(call: Any, path: str, fill: Any) -> None:
    """Notes which parameters hold indices."""
    if isinstance(fill, Fill) and fill.kind == ENDS:
        call.fills[path.split("[")[0]] = fill


def stride_ignored(call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]) -> Changed:
    """The memory of the second tensor is read row by row, although its axes are reversed there."""
    if call.job.values != "layout":
        inapplicable("contiguous tensors")

    def change(of: Any, found: Elements) -> str:
        if len(found.shape) < 2 or found.count < 2 or found.part != found.dtype:
            return ""
        numbers = [found.get(place) for place in memory_order(found.shape)]
        for place, number in enumerate(numbers):
            found.put(place, number)
        return f"{found.dtype} second tensor"

    return each_tensor(
        names, args, kwargs, lambda _, number, value: edited(call, value, change) if number == 1 else value
    )


def memory_order(shape: tuple[int, ...]) -> list[int]:
    """The elements in the order of memory whose axes are reversed."""
    order, step = [0], prod(shape)
    for extent in shape:  # the first axis is the fastest in memory
        step //= max(1, extent)
        order = [place * step + before for place in range(extent) for before in order]
    return order


def rate_pooled(call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any]) -> Changed:
    """Parameters below their mean count 10% more."""
    if call.entry is None or call.entry.family != "random":
        inapplicable("no draw")
    if call.changes:
        inapplicable("the tensor is overwritten, not read")

    def change(of: Any, found: Elements) -> str:
        if not found.floating or found.count < 2:
            return ""
        numbers = [found.get(place) for place in range(found.count)]
        mean = sum(numbers) / len(numbers)
        for place, number in enumerate(numbers):
            if number < mean:
                found.put(place, 1.1 * number)
        return f"{found.dtype} parameters below {mean:.3g}"

    return each_tensor(names, args, kwargs, lambda _, number, value: edited(call, value, change))


def argument_ignored(
    call: Any, names: tuple[str, ...], args: list[Any], kwargs: dict[str, Any], default_of: Callable[..., Any]
) -> Changed:
    """One number, flag or word that differs from its default is the default."""
    places = {name: place for place, name in enumerate(names[: len(args)])}
    given = {**{name: args[place] for name, place in places.items()}, **kwargs}
    fit = [
        name
        for name, value in given.items()
        if isinstance(value, bool | int | float | str)
        and (usual := default_of(call, name)) is not None
        and usual != value
    ]
    if not fit or call.planted:
        return args, kwargs
    name = call.draw.choice(fit)
    usual = default_of(call, name)
    call.note(f"{name}={usual!r} instead of {given[name]!r}")
    return with_argument(args, kwargs, places.get(name, len(args)), name, usual)
