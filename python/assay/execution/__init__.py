"""Executions: how a lane runs a call. One file for each, found by its name.

Every batch names the execution ("eager"), or several joined by "+", innermost first: under "amp+to_static" a
compiled function runs the call with automatic mixed precision. A file has a class `Way` with what differs
from `Plain`.
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
    in_place = True  # whether a call may change its arguments

    def __init__(self, framework: Framework) -> None:
        self.framework = framework

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
            if part not in known:
                refuse(f"unknown execution {part}; known are {', '.join(known)}")
            ways.append(importlib.import_module(f"assay.execution.{part}").Way(framework))
        self.ways = ways
        self.runs = max(way.runs for way in ways)
        self.in_place = all(way.in_place for way in ways)
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
