"""Operators of paddle._C_ops: kernels by their own names, with the positional arguments of Paddle's ops.yaml.

Most operators have a public function of the same meaning. Their reference is that function's, with other
names and another order of arguments:

    derive("x, axis, keepdim", "amax amin")      # the same names
    derive("x, axis, keepdims=keepdim", "argmax")  # the operator's name, then the function's

A custom operator, `paddle._C_ops._run_custom_op("NAME", …)`, is the API `paddle._C_ops._run_custom_op.NAME`.
Its reference is in a user's file (own_tables.py).

Only listed operators may be called. An operator called with too few arguments reads beyond them and crashes,
so such a case is refused.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from assay.registry import REGISTRY, Api, Registry, changes_input
from assay.wire import Job, refuse

ROOT = "paddle._C_ops."
CUSTOM = f"{ROOT}_run_custom_op"
# Where the public function of an operator is, in order of preference.
HOMES = (
    "paddle.", "paddle.nn.functional.", "paddle.linalg.", "paddle.incubate.nn.functional.", "paddle.Tensor.",
)  # fmt: skip


def derive(signature: str, names: str, to: str = "") -> None:
    """Registers operators whose arguments are those of a public function.

    signature: the operator's parameters; `own=theirs` where the function has another name, `own=` for one
    that the function does not take.
    names: the operators, with an underscore at the end if they work in place.
    to: the function without its root, if it has another name.
    """
    pairs = [part.strip().partition("=") for part in signature.split(",")]
    theirs = {own: other if equals else own for own, equals, other in pairs}

    def register(registry: Registry) -> None:
        for name in names.split():
            _enter(registry, name, theirs, f"paddle.{to}" if to else _function_of(registry, name))

    REGISTRY.derive(register)


def _function_of(registry: Registry, name: str) -> str:
    stem = name.removesuffix("_")
    return next(home + stem for home in HOMES if home + stem in registry)


def _enter(registry: Registry, name: str, theirs: Mapping[str, str], function: str) -> None:
    in_place = changes_input(ROOT + name)
    like = registry[f"{function}_" if in_place and f"{function}_" in registry else function]
    passed = {own: other for own, other in theirs.items() if other}
    if unknown := set(passed.values()) - {*like.parameters}:
        raise ValueError(f"{ROOT}{name}: {function} has no parameter {', '.join(sorted(unknown))}")
    owns = {other: own for own, other in passed.items()}
    aliases = {other: own for other, own in owns.items() if other != own}

    def renamed(rules: Mapping[str, Any]) -> dict[str, Any]:
        return {owns[other]: rule for other, rule in rules.items() if other in owns}

    updates = like.updates
    changed = owns.get(like.changes, next(iter(theirs))) if in_place else ""
    registry[ROOT + name] = replace(
        like,
        name=ROOT + name,
        call=_by_name(like, passed, tuple(theirs)),
        parameters=tuple(theirs),
        rules=renamed(like.rules),
        regimes={regime: renamed(rules) for regime, rules in like.regimes.items()},
        layouts=renamed(like.layouts),
        changes=changed,
        updates=updates if callable(updates) else tuple(owns[other] for other in updates if other in owns),
        shown=_shown(like, owns),
        ignores={owns[other]: reason for other, reason in like.ignores.items() if other in owns},
        aliases=aliases,
    )


def name_of(name: str) -> str:
    """The full name of an operator."""
    return ROOT + name


def _shown(like: Api, owns: Mapping[str, str]) -> Callable[[Any, dict[str, Any]], Any] | None:
    shown = like.shown

    def of_operator(found: Any, given: dict[str, Any]) -> Any:
        return shown(found, {other: given[own] for other, own in owns.items() if own in given})

    return of_operator if shown else None


def _by_name(like: Api, passed: Mapping[str, str], parameters: tuple[str, ...]) -> Callable[..., Any]:
    return taking(
        parameters,
        [own for own, other in passed.items() if other not in like.ignores],
        lambda given: like.call(**{passed[own]: value for own, value in given.items() if own in passed}),
    )


def taking(
    parameters: Iterable[str], reads: Iterable[str], function: Callable[[dict[str, Any]], Any]
) -> Callable[..., Any]:
    """A function of these parameters, all required, that calls `function` with its arguments by name."""
    names = tuple(parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(dict(zip(names, args, strict=False)) | kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    call.reads = set(reads) & set(names)
    return call


def check_arguments(entry: Api, args: Any, kwargs: Mapping[str, Any]) -> None:
    """Raises Stop if a call of an operator lacks an argument or has one too many. A custom operator checks
    its arguments itself."""
    if custom_name(entry.name):
        return
    given = {*entry.parameters[: len(args)], *kwargs}
    missing = [name for name in entry.parameters if name not in given]
    surplus = sorted(given - {*entry.parameters, "out", "name"})
    if missing or surplus or len(args) > len(entry.parameters):
        refuse(f"{entry.name} takes {len(entry.parameters)} arguments: {', '.join(entry.parameters)}")


def spelled(job: Job) -> Job:
    """The job, with the name of a custom operator as a part of the API's name."""
    if job.api != CUSTOM or not job.args or not isinstance(job.args[0], str):
        return job
    return job._replace(api=f"{CUSTOM}.{job.args[0]}", args=job.args[1:])


def custom_name(api: str) -> str:
    """The name of the custom operator that `api` is; empty for any other API."""
    return api.removeprefix(CUSTOM + ".") if api.startswith(CUSTOM + ".") else ""
