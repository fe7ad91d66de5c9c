"""How a lane executes a call: one file for each way, found by its name.

A lane is told its way with every batch ("eager"), or several, joined by "+", the innermost first: under
"amp+to_static" a compiled function runs the call with automatic mixed precision.

A file has a class `Way` with what differs from `Plain`.
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
    """The call as it stands, once."""

    runs = 1  # how often a case is run, from making its inputs on
    timed = False  # its time is asked for, and not its results
    in_place = True  # a call may change its arguments; without, it only returns

    def __init__(self, framework: Framework) -> None:
        self.framework = framework

    def wrap(self, function: Function, api: str) -> Function:
        """What is called instead of `function`, which stands for `api`. Asked for once for each API, so that
        the function itself costs nothing."""
        return function


class Execution:
    """All ways that a lane was told, as one."""

    def __init__(self, name: str, framework: Framework) -> None:
        known = names()
        ways = []
        for part in name.split("+"):
            if part not in known:
                refuse(f"no execution is called {part}; there are {', '.join(known)}")
            ways.append(importlib.import_module(f"assay.execution.{part}").Way(framework))
        self.ways = ways
        self.runs = max(way.runs for way in ways)
        self.in_place = all(way.in_place for way in ways)
        self.timed = any(way.timed for way in ways)

    def wrap(self, function: Function, api: str) -> Function:
        """What is called instead of `function`."""
        for way in self.ways:
            function = way.wrap(function, api)
        return function


@cache
def names() -> tuple[str, ...]:
    """All ways that there are."""
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


def ability(framework: Framework, method: str, words: str) -> Any:
    """A method that not every framework has; a case that needs it is skipped with these words."""
    found = getattr(framework, method, None)
    if found is None:
        raise Stop(SKIPPED, f"{framework.name} {framework.version} has no {words}")
    return found
