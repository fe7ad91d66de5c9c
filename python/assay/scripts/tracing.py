"""Runs the script of a finding, and traces what a function of the API tables calls in the framework.

No script of an API that no lane may call is run (check_name).
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.scripts.source import literal
from assay.wire import Stop

MOST_OUTPUT = 4000  # characters
NAME = re.compile(r"\by\d+\b")
TRACE_FILE = "ASSAY_TRACE"  # the variable that names the file to which a traced script writes


def check_name(api: str) -> None:
    """Raises Stop if no lane may call the API."""
    from assay.names import callable_name, public_name
    from assay.registry import load_all

    if api.startswith("torch."):
        import torch

        from assay.extensions import import_all
        from assay.torch_cases.names import function_of

        import_all()
        function_of(torch, api)
        return
    known = api in load_all()
    public_name(api, known)
    if not known:
        callable_name(api)


def run(script: str, limit: float, **environment: str) -> tuple[int | None, str]:
    """Runs a script in this interpreter. Gives its exit code, None if it still ran after `limit` seconds, and
    the end of its output."""
    with tempfile.TemporaryDirectory(prefix="assay-script-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=folder,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        code: int | None
        try:
            output, _ = process.communicate(timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            code = None
    return code, output[-MOST_OUTPUT:]


class TracedCall(NamedTuple):
    """Calls as lines of Python, of which the last assigns `result`."""

    lines: list[str]
    outputs: list[str]  # expressions of the result's differentiable tensors


def traced(api: str, script: str, limit: float) -> TracedCall | str:
    """The calls that the tables' function of `api` makes when the script calls trace(), up to the one that
    ended it; or why they are unknown."""
    try:
        check_name(api)
    except Stop as reason:
        return str(reason)
    with tempfile.NamedTemporaryFile() as file:
        _, output = run(script, limit, **{TRACE_FILE: file.name})
        told = [json.loads(line) for line in file.read().decode().splitlines()]
    if not told:
        return f"it could not be traced: {output.strip().splitlines()[-1:]}"
    if "error" in told[-1]:
        return str(told[-1]["error"])
    last = told[-1] if "result" in told[-1] else {"result": told[-1]["name"], "outputs": []}
    calls = [each for each in told if "line" in each]
    return TracedCall(needed(calls, last["result"]), last["outputs"])


def needed(calls: list[dict[str, str]], result: str) -> list[str]:
    """The lines on which the result depends, and those that change a tensor in place."""
    wanted = set(NAME.findall(result))
    lines = [f"result = {result}"]
    for call in reversed(calls):
        changes = call["line"].partition("(")[0].endswith("_")
        if call["name"] in wanted or changes:
            wanted.update(NAME.findall(call["line"]))
            lines.append(f"{call['name']} = {call['line']}")
    return lines[::-1]


class Untraceable(Exception):
    """The function makes a call that no line of Python stands for."""


class Tracer:
    """Writes down the framework's calls of a function. A name stands for each tensor."""

    def __init__(self, torch: Any, tensors: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
        self.torch = torch
        self.names = {id(tensor): name for name, tensor in tensors.items()}
        self.alive = list(tensors.values())  # so that no id is given twice
        self.tell = tell
        self.count = 0

    def name_of(self, value: Any) -> str:
        """The value as Python. Raises Untraceable if there is no such text."""
        text = literal(value, self._known)
        if text is None:
            raise Untraceable(f"it passes an argument of type {type(value).__name__}")
        return text

    def _known(self, value: Any) -> str | None:
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if id(value) in self.names:
                return self.names[id(value)]
            raise Untraceable("it uses a tensor of unknown origin")
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return str(value)
        return f'"{value}"' if isinstance(value, torch.device) else None

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Tells of the call before it is made, because it may end the process."""
        from torch.overrides import resolve_name

        name = resolve_name(function)
        if name is None:
            raise Untraceable(f"it calls {function!r}")
        given = [self.name_of(value) for value in args]
        given += [f"{key}={self.name_of(value)}" for key, value in kwargs.items()]
        if name.endswith(".__get__"):
            text = f"{given[0]}.{name.removesuffix('.__get__').rpartition('.')[2]}"
        else:
            text = f"{name}({', '.join(given)})"
        self.tell({"name": f"y{self.count}", "line": text})
        result = function(*args, **kwargs)
        self._keep(result)
        return result

    def _keep(self, result: Any) -> None:
        name = f"y{self.count}"
        self.count += 1
        parts = [(name, result)]
        if isinstance(result, list | tuple):
            parts = [(f"{name}[{i}]", part) for i, part in enumerate(result)]
        for text, tensor in parts:
            if isinstance(tensor, self.torch.Tensor) and id(tensor) not in self.names:
                self.names[id(tensor)] = text
                self.alive.append(tensor)


def trace(api: str, tensors: dict[str, Any], call: Callable[[Callable[..., Any]], Any]) -> None:
    """Called by a script: `call` calls the tables' function of `api` with `tensors`."""
    import torch
    from torch.overrides import TorchFunctionMode

    from assay.registry import load_all
    from assay.results import flatten

    entry = load_all()[api]
    with open(os.environ[TRACE_FILE], "a", buffering=1) as file:

        def tell(fact: dict[str, Any]) -> None:
            file.write(json.dumps(fact) + "\n")

        tracer = Tracer(torch, tensors, tell)

        class Mode(TorchFunctionMode):
            def __torch_function__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return tracer.called(function, args, kwargs or {})

        try:
            with Mode():
                result = call(entry.call)
            leaves = [value for _, value in flatten(result, "", torch.Tensor, lambda _: None)]
            outputs = [tracer.name_of(leaf) for leaf in leaves if getattr(leaf, "requires_grad", False)]
            tell({"result": tracer.name_of(result), "outputs": outputs})
        except Untraceable as error:
            tell({"error": str(error)})
            raise
