"""Value rules: how the tensors of a case are filled.

A rule is data: a kind that `src/fill` knows, and bounds. A bound may be a function of the call's other
arguments, by their names in the API's signature. Tensors arrive as `TensorSpec`, and `this` is the tensor
that is filled. A rule may also be a function that returns a rule, or None for the default of the dtype:

    @api("paddle.gather", index=integers(0, lambda x, axis=0: x.shape[axis]))
    @api("paddle.pow", x=lambda x, y: positive() if x.dtype == "float16" else None)

Rules see specifications only, never values, so both lanes get the same result.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from assay import shared

Bound = float | Callable[..., float]


class Fill(NamedTuple):
    """A rule with numeric bounds. `kind` is a FillKind of src/fill/rule.h."""

    kind: int
    low: float
    high: float
    extent: int


class Literal(NamedTuple):
    """The values themselves, row by row, one for each element of the tensor."""

    values: Sequence[float]


class Sample(NamedTuple):
    """Values that stand for others of their kind. Unlike those of a Literal they may be rounded."""

    values: Sequence[float]


WORKED_OUT = (Fill, Literal)


class Rule(NamedTuple):
    """A rule whose bounds may be functions of the call's arguments."""

    kind: int
    low: Bound
    high: Bound
    extent: Bound = 0


AnyRule = Rule | Fill | Literal | Callable[..., Any] | None


def uniform(low: Bound = -0.5, high: Bound = 0.5) -> Rule:
    """Uniform over [low, high); for complex numbers in both parts."""
    return Rule(shared.UNIFORM, low, high)


def positive(low: Bound = 0.1, high: Bound = 1.1) -> Rule:
    """Away from zero, for logarithms, roots and divisors."""
    return Rule(shared.UNIFORM, low, high)


def integers(low: Bound, high: Bound) -> Rule:
    """Integers in [low, high), as in range(); also in a floating dtype. Four or more elements include the
    first integer, the last one, and two equal ones."""
    return Rule(shared.ENDS, low, high)


def distinct(low: Bound = -0.5, high: Bound = 0.5) -> Rule:
    """No value twice, if the dtype has enough values: for sorting, top-k and pooling with indices."""
    return Rule(shared.DISTINCT, low, high)


def increasing(low: Bound = -0.5, high: Bound = 0.5) -> Rule:
    """Increasing along the last axis."""
    return Rule(shared.INCREASING, low, high)


def symmetric(low: Bound = -0.5, high: Bound = 0.5) -> Rule:
    """Symmetric (Hermitian) in the last two axes."""
    return Rule(shared.SYMMETRIC, low, high)


def positive_definite(low: Bound = -0.5, high: Bound = 0.5) -> Rule:
    """Symmetric and strictly diagonally dominant in the last two axes."""
    return Rule(shared.POSITIVE_DEFINITE, low, high)


def boxes(low: Bound, high: Bound) -> Rule:
    """Rows x1, y1, x2, y2 with x1 < x2 and y1 < y2, all within [low, high]."""
    return Rule(shared.BOXES, low, high)


def halves(low: Bound = -3.0, high: Bound = 3.5) -> Rule:
    """Halves of integers in [low, high): zeros, ties, and values that round either way."""
    return Rule(shared.HALVES, low, high)


def constant(value: Bound) -> Rule:
    """The same value everywhere."""
    return Rule(shared.CONSTANT, value, value)


def literal(values: Callable[..., Sequence[float]]) -> Callable[..., Literal]:
    """Values computed from the other arguments, for lengths, offsets and the like."""
    names = tuple(inspect.signature(values).parameters)

    def rule(**arguments: Any) -> Literal:
        return Literal(values(**{name: arguments[name] for name in names if name in arguments}))

    rule.__signature__ = inspect.signature(values)  # type: ignore[attr-defined]
    return rule


def resolve(rule: AnyRule, arguments: Mapping[str, Any], this: Any) -> Fill | Literal | None:
    """The rule with numeric bounds for the tensor `this` of a call with these named arguments; None is the
    default of the dtype."""
    while callable(rule):
        rule = ask(rule, arguments, this)
    if rule is None or isinstance(rule, WORKED_OUT):
        return rule
    kind, low, high, extent = rule
    low = ask(low, arguments, this) if callable(low) else low
    high = ask(high, arguments, this) if callable(high) else high
    extent = ask(extent, arguments, this) if callable(extent) else extent
    if kind == shared.ENDS and this.size > shared.MOST_ELEMENTS:  # they are there by chance
        kind = shared.INTEGERS
    if kind in (shared.DISTINCT, shared.ENDS):
        extent = this.size
    elif kind in (shared.INCREASING, shared.SYMMETRIC, shared.POSITIVE_DEFINITE):
        extent = this.shape[-1] if this.shape else 1
    return Fill(kind, float(low), float(high), int(extent))


def ask(function: Callable[..., Any], arguments: Mapping[str, Any], this: Any) -> Any:
    """The result of a function of a case's arguments, called with the arguments that it names."""
    wanted = {}
    for name in _parameters(function):
        if name == "this":
            wanted[name] = this
        elif name in arguments:
            wanted[name] = arguments[name]
    return function(**wanted)


@functools.lru_cache(4096)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    plain = isinstance(function, FunctionType) and not function.__dict__  # not decorated
    if plain and not function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        code = function.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(function).parameters)  # 100 µs
