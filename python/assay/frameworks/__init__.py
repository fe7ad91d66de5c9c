"""One file per framework. Each is a class with the same few methods; see `Framework`.

A framework object is made in the cold fork server, where it may import but run nothing and touch no
device; `start` runs in the forked lane.
"""

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from assay.spec import TensorSpec
from assay.wire import refuse


class Dense(NamedTuple):
    """A tensor as elements in memory: dense, row by row. `keep` keeps them alive."""

    keep: Any
    pointer: int
    count: int
    dtype: str
    shape: Sequence[int]
    on_device: bool = False  # in the memory of the lane's GPU, not in the host's


class Framework(Protocol):
    """What a lane asks of a framework. `dtypes` lacks those that this version lacks. `sparse` makes the
    sparse form of a dense tensor, differentiable if that is; `sparse_parts` takes one apart, as Sparse.parts
    does, and gives None for a dense tensor. `strided` gives the same values in memory with gaps, `optimized`
    a parameter after the steps of an optimizer, each with so many times this gradient.

    Some executions ask for more, and skip the cases of a framework that lacks it: `autocast()` gives a
    context of automatic mixed precision, `compiled(function, api)` what runs an API's function as a static
    graph. `stopwatch()` gives the clock of the lane's device, None on the CPU, and may be left out: mark()
    notes a moment in the device's stream, between(a, b) the nanoseconds between two that are past, wait()
    waits for all that was begun. `warm()`, which may be left out as well, runs on a GPU what makes a first
    case slow, in a lane that is forked ahead (assay.spares).

    A build tells with `devices()` the kinds of device that it has, those first that a test of "another
    device" should take, and with `notes()`, by execution, what people should know. Both are asked in the cold
    fork server; without them there is a CPU and nothing to know. One that cannot differentiate says
    `has_gradients = False`: then results alone are compared.
    """

    name: str
    version: str
    tensor_type: type
    dtypes: dict[str, Any]

    def start(self, device: str) -> None: ...
    def release(self) -> None: ...  # gives memory that it keeps for later back to the device
    def seed(self, seed: int) -> None: ...
    def empty(self, shape: Sequence[int], dtype: str) -> Any: ...
    def pointer(self, tensor: Any) -> int: ...
    def resolve(self, api: str) -> Callable[..., Any]: ...
    def want_gradient(self, tensor: Any) -> None: ...
    def writable(self, tensor: Any) -> Any: ...
    def differentiable(self, tensor: Any) -> bool: ...
    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]: ...
    def dense(self, tensor: Any) -> Dense: ...
    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Any: ...
    def sparse_parts(self, tensor: Any) -> dict[str, Any] | None: ...
    def strided(self, tensor: Any, spec: TensorSpec) -> Any: ...
    def place(self, name: str) -> Any: ...
    def parameters(self, layer: Any) -> dict[str, Any]: ...
    def optimized(
        self, make: Any, args: Any, kwargs: Any, steps: Sequence[float], value: Any, gradient: Any
    ) -> Any: ...
    def dtype_name(self, dtype: Any) -> str | None: ...
    def shape(self, tensor: Any) -> Sequence[int]: ...
    def tensor_dtype(self, tensor: Any) -> str: ...
    def constant(self, tensor: Any) -> Any: ...
    def as_layout(self, tensor: Any, number: int) -> Any: ...
    def no_kernel(self, error: BaseException) -> bool: ...
    def out_of_memory(self, error: BaseException) -> bool: ...


def look_up(root: Any, api: str) -> Any:
    """What `api` ("paddle.nn.functional.relu") names in the framework whose module is `root`.

    Frameworks also show what they import for themselves (paddle.os, torch.sys); that is none of
    theirs, and no case may reach it.
    """
    home = root.__name__
    found = root
    for part in api.split(".")[1:]:
        found = getattr(found, part)
        name = found.__name__ if inspect.ismodule(found) else getattr(found, "__module__", None)
        owner = (name or home).split(".")[0]  # methods written in C have none
        if owner != home:
            refuse(f"{api}: {part} is no part of {home}, it belongs to {owner}")
    return found


def load(name: str) -> Framework:
    """Imports the framework `name` ("paddle", "torch") and wraps it.

    ASSAY_FRAMEWORK_MODULE names another module to wrap it with: a build with a wrapper of its own,
    or a stand-in for tests.
    """
    own = f"assay.frameworks.{name}_framework"
    module = importlib.import_module(os.environ.get("ASSAY_FRAMEWORK_MODULE", own))
    return module.create()
