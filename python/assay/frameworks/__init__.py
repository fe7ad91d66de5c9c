"""One file for each framework, with a subclass of `Framework`.

The cold fork server makes the framework object. There it may import, but must run no operation and touch no
device. `start` runs in the forked lane.
"""

import difflib
import importlib
import inspect
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from assay import extensions
from assay.lane_state import LaneState
from assay.spec import TensorSpec
from assay.wire import refuse, text_of


class Dense(NamedTuple):
    """A tensor as contiguous elements in memory, row by row. `keep` owns the memory."""

    keep: Any
    pointer: int
    count: int
    dtype: str
    shape: Sequence[int]
    on_device: bool = False  # in the memory of the lane's GPU instead of the host's


class Framework(ABC):
    """What a lane needs of a framework. `dtypes` holds the dtypes of this version.

    These methods are optional:
        devices()                    the device kinds of the build, preferred ones first; default: the CPU
        notes()                      remarks for users, by execution
        opened()                     the devices that this process has opened
        list_functions()             notes the framework's functions before a module replaces some
        replaced()                   operators of the framework whose kernels a module has replaced
        autocast()                   a context of automatic mixed precision
        compiled(function, api)      a function that runs an API's function as a static graph
        stopwatch()                  the device's clock (assay.frameworks.stopwatch), or None on the CPU
        warm()                       runs on a GPU what slows down a first case, in a spare lane
                                     (assay.spares)
        adopt(capsule)               a tensor from a DLPack capsule, without a copy
        widened(tensor, dtype)       the tensor in a wider dtype; for a reference lane
        moved(tensor, unit, seed, zeros_too)  the perturbed tensor; for a reference lane
        rounding(unit, seed)         a context with perturbed operations; for a reference lane, with
                                     cancelled(), smaller() and without_nan() (assay.truth)
    The cold fork server calls devices() and notes(). A case that needs a missing method is skipped. If
    `has_gradients` is False, only results are compared.
    """

    name: str
    version: str
    tensor_type: type
    dtypes: dict[str, Any]
    _names: dict[Any, str]  # the name of each dtype
    state = LaneState({})  # of the lane; start() makes it
    _NO_KERNEL: re.Pattern[str]
    _OUT_OF_MEMORY: re.Pattern[str]

    @abstractmethod
    def start(self, device: str) -> None:
        """Selects the device ("cpu", "gpu:0") of a forked lane."""

    @abstractmethod
    def release(self) -> None:
        """Returns cached memory to the device."""

    def peak_kb(self) -> int:
        """The most memory of tensors on the lane's GPU since the last call of this; 0: not known."""
        return 0

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Seeds the random generators of the lane's devices."""

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """An uninitialised tensor."""

    def placed(self, tensor: Any) -> Any:
        """A filled tensor on the lane's device, if empty() has made it on the host."""
        return tensor

    @abstractmethod
    def resolve(self, api: str) -> Callable[..., Any]:
        """The framework's function for an API's full name. Raises AttributeError or Stop if there is none."""

    @abstractmethod
    def want_gradient(self, tensor: Any) -> None:
        """Marks a leaf tensor as differentiable."""

    @abstractmethod
    def writable(self, tensor: Any) -> Any:
        """A differentiable copy that an in-place call may change."""

    def strides(self, tensor: Any) -> tuple[int, ...]:
        """The steps in memory along each axis."""
        return tuple(tensor.strides)

    def stacked(self, tensor: Any) -> Any:
        """A new last axis of two equal slices, strided, each of which is the tensor. None if that is not
        possible."""
        return None

    def equal(self, left: Any, right: Any) -> bool:
        """Whether two tensors of one shape have equal elements."""
        return bool((left == right).all())

    @abstractmethod
    def differentiable(self, tensor: Any) -> bool:
        """Whether gradients flow through the tensor."""

    @abstractmethod
    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        """The gradients of the inputs under the upstream gradients of the outputs; None for an unused
        input."""

    @abstractmethod
    def dense(self, tensor: Any) -> Dense:
        """The elements of a tensor of any layout, copied only if they are not contiguous."""

    @abstractmethod
    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Any:
        """The sparse form of a dense tensor (assay.sparse), differentiable if the tensor is."""

    def sparse_tensor(self, sparse: Any) -> Any:
        """What `sparse` returned as the framework's own tensor, if that is another object."""
        return sparse

    @abstractmethod
    def strided(self, tensor: Any, spec: TensorSpec) -> Any:
        """The same values in memory with the strides of `spec`."""

    @abstractmethod
    def optimizer(self, make: Any, args: Any, kwargs: Any, value: Any) -> tuple[Any, Any]:
        """A parameter with this value, and the optimizer that `make` constructs for it."""

    @abstractmethod
    def dtype_name(self, dtype: Any) -> str | None:
        """The name of a dtype object; None for any other object."""

    def sparse_parts(self, tensor: Any) -> dict[str, Any] | None:
        """The parts of a sparse tensor, as Sparse.parts returns them; None for a dense tensor."""
        return None

    def as_layout(self, tensor: Any, number: int) -> Any:
        """The same values in a non-contiguous or offset layout, for the regime `layout`."""
        return tensor

    def place(self, name: str) -> Any:
        """The object for a device that a case names. References compute on their own device."""
        return name

    def memory_format(self, name: str) -> Any:
        """The object for a memory format or a layout that a case names."""
        refuse(f"{self.name} has no memory format {name}")

    def laid_out(self, results: Any, memory_format: Any) -> bool:
        """Whether a result has the strides of a memory format; True if none is documented."""
        return True

    def pointer(self, tensor: Any) -> int:
        """The address of the first element."""
        return tensor.data_ptr()

    def constant(self, tensor: Any) -> Any:
        """The tensor outside of the autograd graph."""
        return tensor.detach()

    def shape(self, tensor: Any) -> Sequence[int]:
        """The extents of the tensor."""
        return tuple(tensor.shape)

    def tensor_dtype(self, tensor: Any) -> str:
        """The name of the tensor's dtype."""
        return self._names[tensor.dtype]

    def parameters(self, layer: Any) -> dict[str, Any]:
        """A layer's parameters by name."""
        return dict(layer.named_parameters())

    def optimized(
        self, make: Any, args: Any, kwargs: Any, steps: Sequence[float], value: Any, gradient: Any
    ) -> Any:
        """A parameter after steps of the optimizer, each with a multiple of `gradient`."""
        parameter, optimizer = self.optimizer(make, args, kwargs, value)
        for factor in steps:
            parameter.grad = gradient * factor
            optimizer.step()
        return parameter.detach()

    def custom_operator(self, name: str) -> Callable[..., Any] | None:
        """The custom operator of this name; None if the process has not loaded one."""
        return None

    def no_kernel(self, error: BaseException) -> bool:
        """Whether the error states that this build has no such kernel."""
        return self._NO_KERNEL.search(text_of(error)) is not None

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether the error states that memory ran out."""
        return isinstance(error, MemoryError) or self._OUT_OF_MEMORY.search(text_of(error)) is not None

    def needed_kb(self, error: BaseException) -> int:
        """For an error of `out_of_memory`: what the call needs at least on its GPU. That is its tensors and
        the one that did not fit. 0: not known."""
        return 0


def look_up(root: Any, api: str) -> Any:
    """The object that `api` ("paddle.nn.functional.relu") names in the framework whose module is `root`.

    Rejects what a framework imported for itself (paddle.os, torch.sys), but not what the lane's own modules
    have put in the place of a function. Raises AttributeError for an unknown name.
    """
    home = root.__name__
    owners = {home, *extensions.packages()}
    found = root
    for part in api.split(".")[1:]:
        found = getattr(found, part)
        name = found.__name__ if inspect.ismodule(found) else getattr(found, "__module__", None)
        owner = (name or home).split(".")[0]  # methods written in C have no module
        if owner not in owners:
            refuse(f"{api}: {part} belongs to {owner}, not to {home}")
    return found


def missing(framework: Framework, api: str, known: Iterable[str] = ()) -> str:
    """Says that the framework has no such API. Suggests one of the `known` names that ends alike, or else the
    nearest name beside it."""
    found = sys.modules.get(framework.name)
    for part in api.split(".")[1:]:
        if not hasattr(found, part):
            near = [name for name in known if name.endswith("." + part)] or (
                difflib.get_close_matches(part, [name for name in dir(found) if name[0] != "_"], 1)
            )
            hint = f"; did you mean {near[0]}?" if near else ""
            return f"{framework.name} {framework.version} has no {part} ({api}){hint}"
        found = getattr(found, part)
    return f"{framework.name} {framework.version} has no {api}"


def load(name: str) -> Framework:
    """Imports and wraps the framework `name` ("paddle", "torch").

    ASSAY_FRAMEWORK_MODULE selects another wrapper: for a build that needs its own, or as a stand-in for
    tests.
    """
    own = f"assay.frameworks.{name}_framework"
    module = importlib.import_module(os.environ.get("ASSAY_FRAMEWORK_MODULE", own))
    return module.create()
