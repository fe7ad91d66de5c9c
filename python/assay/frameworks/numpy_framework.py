"""NumPy as a lane: an example of what a framework needs.

It calls NumPy's function with an API's name: `paddle.add` as numpy.add, `paddle.linalg.det` as
numpy.linalg.det. It has no gradients.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from assay.frameworks import Dense, Framework, look_up
from assay.spec import TensorSpec
from assay.wire import CODES, DTYPES, UNSUPPORTED, Stop, count_of


class NumpyFramework(Framework):
    """NumPy's functions on host memory."""

    name = "numpy"
    has_gradients = False
    _OUT_OF_MEMORY = re.compile("(?!)")  # NumPy raises MemoryError

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy
        self.version: str = numpy.__version__
        self.tensor_type = numpy.ndarray
        self.dtypes = {name: numpy.dtype(name) for name in DTYPES if hasattr(numpy, name)}

    def start(self, device: str) -> None:
        """Nothing: NumPy has one device."""

    def release(self) -> None:
        """Nothing: NumPy caches no memory."""

    def seed(self, seed: int) -> None:
        """Seeds numpy.random with the low 32 bits."""
        self.numpy.random.seed(seed % (1 << 32))

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self.numpy.empty(shape, self.dtypes[dtype])

    def pointer(self, tensor: Any) -> int:
        return tensor.ctypes.data

    def resolve(self, api: str) -> Callable[..., Any]:
        """The function of the same name in numpy, numpy.linalg or numpy.fft. Those usually take the same
        arguments by position. Raises Stop if there is none."""
        namespace, _, function = api.rpartition(".")
        home = "linalg" if namespace.endswith(".linalg") else "fft" if namespace.endswith(".fft") else ""
        try:
            return self._arrays(look_up(self.numpy, ".".join(filter(None, ("numpy", home, function)))))
        except AttributeError:
            raise Stop(UNSUPPORTED, f"NumPy {self.version} has no function for {api}") from None

    def _arrays(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with 0-d arrays in place of the scalars that NumPy returns."""
        generic, asarray = self.numpy.generic, self.numpy.asarray

        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("name", None)
            found = function(*args, **kwargs)
            return asarray(found) if isinstance(found, generic) else found

        return call

    def want_gradient(self, tensor: Any) -> None:
        """Nothing: NumPy has no gradients."""

    def writable(self, tensor: Any) -> Any:
        return tensor

    def constant(self, tensor: Any) -> Any:
        return tensor

    def differentiable(self, tensor: Any) -> bool:
        return False

    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        return [None] * len(inputs)

    def dense(self, tensor: Any) -> Dense:
        shape = tensor.shape  # ascontiguousarray() makes [1] of []
        tensor = self.numpy.ascontiguousarray(tensor)
        return Dense(tensor, tensor.ctypes.data, count_of(shape), str(tensor.dtype), shape)

    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Any:
        raise Stop(UNSUPPORTED, "NumPy has no sparse tensors")

    def strided(self, tensor: Any, spec: TensorSpec) -> Any:
        as_strided = self.numpy.lib.stride_tricks.as_strided
        memory = self.numpy.zeros(spec.storage(), tensor.dtype)
        strides = [step * tensor.itemsize for step in spec.strides]
        as_strided(memory, spec.apart(), strides)[...] = tensor[
            tuple(slice(extent) for extent in spec.apart())
        ]
        return as_strided(memory, spec.shape, strides)

    def as_layout(self, tensor: Any, number: int) -> Any:
        """Every second element of a larger array."""
        memory = self.numpy.empty((*tensor.shape[:-1], 2 * tensor.shape[-1]), tensor.dtype)
        memory[..., ::2] = tensor
        return memory[..., ::2]

    def parameters(self, layer: Any) -> dict[str, Any]:
        raise Stop(UNSUPPORTED, "NumPy has no layers")

    def optimizer(self, make: Any, args: Any, kwargs: Any, value: Any) -> tuple[Any, Any]:
        raise Stop(UNSUPPORTED, "NumPy has no optimizers")

    def dtype_name(self, dtype: Any) -> str | None:
        return str(dtype) if isinstance(dtype, self.numpy.dtype) and str(dtype) in CODES else None

    def tensor_dtype(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def no_kernel(self, error: BaseException) -> bool:
        """A ufunc without a loop for the dtype."""
        return isinstance(error, TypeError) and "not supported for the input types" in str(error)


def create() -> NumpyFramework:
    """The wrapper of the installed NumPy."""
    return NumpyFramework()
