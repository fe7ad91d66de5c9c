"""The function that `assay kernel FILE.py:NAME` names. Cases call it torch.kernel.NAME.

The test lane loads the kernel, and the reference lane the reference, so that neither can change the other.
Without a reference both lanes load the kernel. Only the command line names them: a corpus cannot.
"""

import ast
import difflib
import inspect
import json
import os
import pathlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from assay import own_tables, rules
from assay.layers import LAYER, Made
from assay.own_tables import KERNEL, REFERENCE
from assay.registry import Api
from assay.rules import AnyRule, Fill
from assay.shared import UNIFORM
from assay.spec import FLOATING, TensorSpec
from assay.torch_cases.modules import module_of, names_of
from assay.torch_cases.oracle import Oracle
from assay.wire import UNSUPPORTED, Stop, refuse

ROOT = "torch.kernel"
FACTS = "ASSAY_KERNEL_FACTS"  # assay.scripts.kernel
SMALL = 2.0**-9


class Unusable(Exception):
    """Why FILE.py:NAME names no function."""


@cache
def load(place: str) -> Callable[..., Any]:
    """The function or class at FILE.py:NAME. Raises Unusable."""
    file, _, name = place.rpartition(":")
    path = pathlib.Path(file)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        module = own_tables.module_of(f"assay_kernel_{path.stem}", path)
    except BaseException as error:
        why = " ".join(str(error).split())
        raise Unusable(f"{file} cannot be imported: {type(error).__name__}: {why}") from error
    found = getattr(module, name, None)
    if not callable(found):
        known = [each for each, value in vars(module).items() if callable(value) and each[0] != "_"]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known) or 'none'}"
        raise Unusable(f"{file} has no function {name}{hint}")
    return found


def is_kernel(api: str) -> bool:
    """Whether a case means the kernel of this command line."""
    return api == f"{ROOT}.{os.environ.get(KERNEL, '').rpartition(':')[2]}"


def function_of(api: str) -> Callable[..., Any]:
    """What a lane calls for the kernel: the reference if it has one."""
    try:
        function = load(os.environ.get(REFERENCE) or os.environ[KERNEL])
    except Unusable as error:
        refuse(str(error))
    facts = json.loads(os.environ[FACTS])
    if inspect.isclass(function):
        return function
    return checked(in_place(function, facts), facts)


def checked(function: Callable[..., Any], facts: dict[str, Any]) -> Callable[..., Any]:
    """The function, whose calls are checked in the test lane."""
    if not facts["checks"]:
        return function
    from assay.torch_cases.kernel_checks import Checked  # in a lane with PyTorch only

    return Checked(function, facts)


def checked_operator(operator: Callable[..., Any], entry: Api) -> Callable[..., Any]:
    """An operator that somebody has registered and that has no reference, checked like a kernel."""
    from assay.torch_cases.names import schemas_of

    facts = {
        "names": entry.parameters, "changes": (entry.changes, *entry.updates), "checks": True,
        "view": any(each.alias_info for schema in schemas_of(operator) for each in schema.returns),
        "reference": False, "gradients": None, "given": None,
    }  # fmt: skip
    return checked(operator, facts)


def compared(reference: Callable[..., Any], facts: dict[str, Any]) -> Callable[..., Any]:
    """What the reference lane calls. What a kernel without a reference raises there does not count: else both
    lanes would refuse the call, which is right of a function."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return reference(*args, **kwargs)
        except BaseException as error:
            raise Stop(UNSUPPORTED, "the kernel raises") from error

    return reference if facts["reference"] else call


def in_place(function: Callable[..., Any], facts: dict[str, Any]) -> Callable[..., Any]:
    """The function, which changes its parameters `changes` also if a reference returns their new values. It
    returns a list of what else it returns."""
    changes, names = facts["changes"], facts["names"]
    if not changes:
        return function

    def call(*args: Any, **kwargs: Any) -> list[Any]:
        given = dict(zip(names, args, strict=False)) | kwargs
        changed = [given[name] for name in changes]
        before = [place._version for place in changed]
        result = function(*args, **kwargs)
        returned = list(result) if isinstance(result, list | tuple) else [result]
        if REFERENCE in os.environ and len(returned) == len(changed):
            for place, value, version in zip(changed, returned, before, strict=True):
                fits = value is not None and value is not place and value.shape == place.shape
                if fits and place._version == version:
                    place.copy_(value)
            return []
        return [each for each in returned if each is not None and all(each is not place for place in changed)]

    return call


def rule_of(text: str) -> AnyRule:
    """The value rule that a text such as "integers(0, 100)" names. Raises Unusable."""
    try:
        call = ast.parse(text, mode="eval").body
        return getattr(rules, call.func.id)(*map(ast.literal_eval, call.args))  # type: ignore[attr-defined]
    except (SyntaxError, AttributeError, ValueError, TypeError) as error:
        raise Unusable(f"{text} is no value rule, such as integers(0, 100) or positive()") from error


def small_if_square(facts: dict[str, Any]) -> Callable[..., Fill | None]:
    """A value rule: a square that assay has added (assay.scripts.kernel) has numbers beside which an epsilon
    counts."""
    given = {tuple(shape) for case in facts["given"] for shape in case}

    def rule(this: TensorSpec) -> Fill | None:
        square = this.ndim > 1 and this.shape[0] == this.shape[-1] and this.shape not in given
        return Fill(UNIFORM, -SMALL, SMALL, 0) if square and this.dtype in FLOATING else None

    return rule


def entry_of(torch: Any, api: str) -> Api:
    """The entry of the kernel."""
    function, facts = function_of(api), json.loads(os.environ[FACTS])
    names, changes = tuple(facts["names"]), tuple(facts["changes"])
    common: dict[str, Any] = {
        "own": True,
        "unreferenced": not facts["reference"],
        "traits": {"chained": True, "in_float32": True, "without": {}},
        "rules": dict.fromkeys(names, small_if_square(facts))
        | {name: rule_of(text) for name, text in facts["rules"].items()},
        "grad": True if facts["gradients"] else "the kernel has no gradient",
    }  # fmt: skip
    if not inspect.isclass(function):
        stem = api.rpartition(".")[2]
        call = compared(Oracle(torch, function, stem, names, changes), facts)
        return Api(api, call, names, updates=changes, **common)
    plain = module_of(torch, function, names)

    def made(*args: Any, **kwargs: Any) -> Made:
        found = plain(*args, **kwargs)
        return replace(found, call=compared(found.call, facts), own=checked(found.own, facts))

    return Api(api, made, names_of(function), kind=LAYER, inputs=names, **common)
