"""PyTorch as a lane sees it."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from assay.frameworks import Dense, look_up
from assay.frameworks.stopwatch import Stopwatch
from assay.sparse import Sparse, places
from assay.spec import TensorSpec
from assay.wire import DTYPES

_NO_KERNEL = re.compile(
    r"not implemented for '|Could not run '.*' with arguments from|not supported for (?:Half|BFloat16|dtype)"
    r"|_cpu\" not implemented|not compiled with CUDA"
)
# What a lane on a GPU may keep for its next case, although others share that GPU (kKeptBytes of
# src/cli/gpu_seats.cc).
KEPT_BYTES = 1 << 29
_OUT_OF_MEMORY = re.compile(r"[Oo]ut of memory|can't allocate memory|not enough memory")


class TorchFramework:
    name = "torch"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.version: str = torch.__version__
        self.tensor_type = torch.Tensor
        self.dtypes = {name: getattr(torch, name) for name in DTYPES if hasattr(torch, name)}
        self._names = {dtype: name for name, dtype in self.dtypes.items()}
        # What grad() calls in the end. Its own part is to compare shapes that we know to be right, for which
        # it imports 487 modules (0.4 s), and to keep for other threads and logs what nobody asks for (5 µs).
        engine = getattr(torch.autograd.Variable, "_execution_engine", None)
        self._run_backward = getattr(engine, "run_backward", None)
        self._empty = torch.empty
        self._strided = torch.strided
        self._device = "cpu"
        self._generators = [torch.default_generator]

    def devices(self) -> list[str]:
        return ["gpu", "cpu"] if self.torch.backends.cuda.is_built() else ["cpu"]

    def start(self, device: str) -> None:
        self._device = device.replace("gpu", "cuda")
        if self._device != "cpu":
            self._empty = partial(self.torch.empty, device=self._device)
            self._start_gpu(int(device.split(":")[1]))
        self.torch.set_num_threads(1)

    def _start_gpu(self, number: int) -> None:
        torch = self.torch
        torch.cuda.set_device(number)
        torch.cuda.init()
        # What a function makes of itself must lie where its arguments do. A default device is a function in
        # Python around every call of PyTorch's, a quarter of the time of small cases; the old default type is
        # looked at in C.
        if hasattr(torch, "set_default_tensor_type"):
            torch.set_default_tensor_type(torch.cuda.FloatTensor)
        else:
            torch.set_default_device(self._device)
        self._generators.append(torch.cuda.default_generators[number])
        # Otherwise what is on a GPU is differentiated in a thread of its own, and the switches take longer
        # than most of what is asked of it.
        torch.autograd.set_multithreading_enabled(False)
        # Results shall have the digits of their dtype, as they have on a CPU.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def warm(self) -> None:
        """Loads what most cases call: a kernel's first call takes 10 to 20 ms, the first product's 0.1 s."""
        torch = self.torch
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            values = torch.ones((4, 4), dtype=dtype, device=self._device).requires_grad_()
            result = (values @ values + values * 2 - values / 2).exp().sum()
            self.gradients([result], [values], [torch.ones_like(result)])
        for dtype in (torch.int32, torch.int64):
            values = torch.ones((4, 4), dtype=dtype, device=self._device)
            (values + values, values * 2, values.sum(), values > 0)
        torch.cuda.synchronize()

    def stopwatch(self) -> Stopwatch | None:
        cuda = self.torch.cuda
        return None if self._device == "cpu" else Stopwatch(cuda.Event, cuda.synchronize)

    def seed(self, seed: int) -> None:
        for generator in self._generators:
            generator.manual_seed(seed)  # torch.manual_seed takes 112 µs

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self._empty(shape, dtype=self.dtypes[dtype])

    def adopt(self, capsule: Any) -> Any:
        return self.torch.from_dlpack(capsule)

    def release(self) -> None:
        if self._device == "cpu":
            return
        # memory_reserved() makes one flat dict of all numbers first.
        said = self.torch.cuda.memory_stats_as_nested_dict()  # empty before the first call on the GPU
        if said and said["reserved_bytes"]["all"]["current"] > KEPT_BYTES:
            self.torch.cuda.empty_cache()

    def pointer(self, tensor: Any) -> int:
        return tensor.data_ptr()

    def resolve(self, api: str) -> Callable[..., Any]:
        return look_up(self.torch, api)

    def want_gradient(self, tensor: Any) -> None:
        tensor.requires_grad_()

    def writable(self, tensor: Any) -> Any:
        return tensor.clone()

    def widened(self, tensor: Any, dtype: str) -> Any:
        return tensor.to(self.dtypes[dtype])

    def moved(self, tensor: Any, unit: float, seed: int, zeros_too: bool) -> Any:
        """Every element times 1 ± (½ … 1) · unit; zeros, which that leaves, by so much themselves.

        The two parts of a complex number are rounded each by itself, so each is moved by itself: moved
        together they would keep their angle, and the real part of a product would keep its digits."""
        torch = self.torch
        if tensor.is_complex():
            parts = self.moved(torch.view_as_real(tensor.resolve_conj()), unit, seed, zeros_too)
            return torch.view_as_complex(parts)
        generator = torch.Generator(tensor.device).manual_seed(seed)
        real = torch.float64
        draws = torch.rand(tensor.shape, generator=generator, dtype=real, device=tensor.device) - 0.5
        shift = (draws + torch.copysign(torch.full_like(draws, 0.5), draws)) * unit
        moved = tensor * (1 + shift)
        return torch.where(tensor == 0, shift.to(tensor.dtype), moved) if zeros_too else moved

    def constant(self, tensor: Any) -> Any:
        return tensor.detach()

    def as_layout(self, tensor: Any, number: int) -> Any:
        return tensor

    def differentiable(self, tensor: Any) -> bool:
        return tensor.requires_grad

    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        if self._run_backward is None:
            return list(self.torch.autograd.grad(outputs, inputs, upstream, allow_unused=True))
        return list(
            self._run_backward(
                tuple(outputs),
                tuple(upstream),
                False,  # nobody goes backward a second time
                False,
                tuple(inputs),
                allow_unreachable=True,
                accumulate_grad=False,
            )
        )

    def autocast(self) -> Any:
        return self.torch.autocast(self._device.split(":")[0])

    def dense(self, tensor: Any) -> Dense:
        if tensor.requires_grad:  # what is lent shall not keep what it was made of
            tensor = tensor.detach()
        if tensor.layout is not self._strided:
            tensor = tensor.to_dense()
        if tensor._is_zerotensor():  # its data pointer is 0
            tensor = tensor.clone()
        if tensor.is_conj():
            tensor = tensor.resolve_conj()
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        tensor = tensor.contiguous()
        dtype, shape = self._names[tensor.dtype], tuple(tensor.shape)
        return Dense(tensor, tensor.data_ptr(), tensor.numel(), dtype, shape, tensor.is_cuda)

    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Sparse:
        """The tables' own form: PyTorch's sparse tensors know few operations, and fewer gradients."""
        held = places(spec.shape, spec.index, layout)
        values = tensor.reshape(held.rows, *held.row)[self.torch.tensor(held.taken, dtype=self.torch.int64)]
        indices = self.torch.tensor(held.indices, dtype=self.torch.int64)
        indices = indices.reshape(len(held.indices), len(held.taken))
        return Sparse(indices, values, spec.shape, "csr" if layout == "csr" else "coo")

    def sparse_parts(self, tensor: Any) -> None:
        return None

    def strided(self, tensor: Any, spec: TensorSpec) -> Any:
        memory = self.torch.zeros(spec.storage(), dtype=tensor.dtype)
        first = tensor[tuple(slice(extent) for extent in spec.apart())]
        self.torch.as_strided(memory, spec.apart(), spec.strides).copy_(first)
        return self.torch.as_strided(memory, spec.shape, spec.strides)

    def place(self, name: str) -> str:
        """References compute where they are."""
        return name

    def parameters(self, layer: Any) -> dict[str, Any]:
        return dict(layer.named_parameters())

    def optimized(
        self, make: Any, args: Any, kwargs: Any, steps: Sequence[float], value: Any, gradient: Any
    ) -> Any:
        parameter = self.torch.nn.Parameter(value.detach().clone())
        optimizer = make([parameter], *args, **kwargs)
        for factor in steps:
            parameter.grad = gradient * factor
            optimizer.step()
        return parameter.detach()

    def dtype_name(self, dtype: Any) -> str | None:
        return self._names.get(dtype) if isinstance(dtype, self.torch.dtype) else None

    def shape(self, tensor: Any) -> Sequence[int]:
        return tuple(tensor.shape)

    def tensor_dtype(self, tensor: Any) -> str:
        return self._names[tensor.dtype]

    def no_kernel(self, error: BaseException) -> bool:
        return _NO_KERNEL.search(str(error)) is not None

    def out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(str(error)) is not None


def create() -> TorchFramework:
    return TorchFramework()
