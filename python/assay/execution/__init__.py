"""Executions: how a lane runs a call. One file for each, found by its name.

Every batch names the execution ("eager"), or several joined by "+", innermost first: under "amp+to_static" a
compiled function runs the call with automatic mixed precision. A file has a class `Way` with what differs
from `Plain`. Some take a setting: "threads=4".
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

from assay.frameworks import Framework
from assay.wire import SKIPPED, Stop, refuse

Function = Callable[..., Any]


class Plain:
    """Runs the call as it is, once."""

    runs = 1  # how often a case runs, including its inputs
    timed = False  # the time is measured instead of the results
    in_place = True  # whether an in-place call returns its argument itself
    functional = False  # whether an in-place call gets a copy of its argument and returns that

    takes_setting = False

    def __init__(self, framework: Framework, setting: str = "") -> None:
        self.framework = framework
        self.setting = setting

    def wrap(self, function: Function, api: str) -> Function:
        """The function that replaces `function`, the implementation of `api`. A lane calls this once for each
        API."""
        return function


class Execution:
    """All executions of a lane, combined. Raises Stop for an unknown name."""

    def __init__(self, name: str, framework: Framework) -> None:
        known = names()
        ways = []
        for part in name.split("+"):
            kind, _, setting = part.partition("=")
            if kind not in known:
                refuse(f"unknown execution {kind}; known are {', '.join(known)}")
            way = importlib.import_module(f"assay.execution.{kind}").Way
            if setting and not way.takes_setting:
                refuse(f"execution {kind} takes no setting, and {part} has one")
            ways.append(way(framework, setting))
        self.ways = ways
        self.is_eager = name == "eager"
        self.runs = max(way.runs for way in ways)
        self.in_place = all(way.in_place for way in ways)
        self.functional = any(way.functional for way in ways)
        self.timed = any(way.timed for way in ways)

    def wrap(self, function: Function, api: str) -> Function:
        """The function that replaces `function`."""
        for way in self.ways:
            function = way.wrap(function, api)
        return function


@cache
def names() -> tuple[str, ...]:
    """The names of all executions."""
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


def ability(framework: Framework, method: str, words: str) -> Any:
    """An optional method of the framework. Raises Stop with these words, which skips the case, if it is
    missing."""
    found = getattr(framework, method, None)
    if found is None:
        raise Stop(SKIPPED, f"{framework.name} {framework.version} has no {words}")
    return found
