"""Runs the script of an issue, for `assay finding`, and traces what a function of the API tables calls.

A request comes as JSON on standard input, the answer goes as JSON to standard output:

    {"v": 1, "do": "run", "api": …, "script": path, "limit": S}
        {"code": 1, "output": "got …"}: how the script ended in this interpreter. -11 means SIGSEGV, null that
        it still ran after the limit
    {"v": 1, "do": "trace", "api": …, "script": path, "limit": S}
        {"lines": ["y0 = torch.add(x0, 1)", "result = y0"], "outputs": ["y0"]}: the calls that the function of
        the tables made when the script called trace()

Both refuse an API that no lane may call: {"error": …}.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

VERSION = 1
MOST_OUTPUT = 4000  # characters
NAME = re.compile(r"\by\d+\b")
TRACE_FILE = "ASSAY_TRACE"  # the variable that names the file to which a traced script writes


def check_name(api: str) -> None:
    """Raises Stop if no lane may call the API."""
    from assay.names import callable_name, public_name
    from assay.registry import load_all

    if api.startswith("torch."):
        import torch

        from assay.torch_cases.names import function_of

        function_of(torch, api)
        return
    known = api in load_all()
    public_name(api, known)
    if not known:
        callable_name(api)


def run(script: str, limit: float, **environment: str) -> dict[str, Any]:
    """Runs a script and gives its exit code and the end of its output."""
    process = subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        cwd=os.path.dirname(script),
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
    return {"code": code, "output": output[-MOST_OUTPUT:]}


def trace_of(script: str, limit: float) -> dict[str, Any]:
    """Runs a script that calls trace() and gives the calls up to its end, or up to the one that ended it."""
    with tempfile.NamedTemporaryFile() as file:
        ended = run(script, limit, **{TRACE_FILE: file.name})
        told = [json.loads(line) for line in file.read().decode().splitlines()]
    if not told:
        return {"error": f"it could not be traced: {ended['output'].strip().splitlines()[-1:]}"}
    if "error" in told[-1]:
        return told[-1]
    last = told[-1] if "result" in told[-1] else {"result": told[-1]["name"], "outputs": []}
    calls = [each for each in told if "line" in each]
    return {"lines": needed(calls, last["result"]), "outputs": last["outputs"]}


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
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if id(value) in self.names:
                return self.names[id(value)]
            raise Untraceable("it uses a tensor of unknown origin")
        if isinstance(value, list | tuple):
            parts = ", ".join(map(self.name_of, value))
            return f"[{parts}]" if isinstance(value, list) else f"({parts},)"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.name_of, (value.start, value.stop, value.step)))})"
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return str(value)
        if isinstance(value, torch.device):
            return f'"{value}"'
        if value is Ellipsis:
            return "..."
        if value is None or isinstance(value, bool | int | float | str | complex):
            return repr(value)
        raise Untraceable(f"it passes an argument of type {type(value).__name__}")

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


def main() -> int:
    """Answers one request."""
    from assay.wire import Stop

    request = json.load(sys.stdin)
    if request.get("v") != VERSION:
        answer: dict[str, Any] = {"error": "a request of another version of assay"}
    else:
        try:
            check_name(request["api"])
            does = {"run": run, "trace": trace_of}[request["do"]]
            answer = does(request["script"], request["limit"])
        except Stop as stop:
            answer = {"error": str(stop)}
    print(json.dumps({"v": VERSION, **answer}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
