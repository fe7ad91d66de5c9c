"""PyTorch as a lane."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from assay.frameworks import Dense, Framework
from assay.frameworks.rounding import rounding
from assay.frameworks.stopwatch import Stopwatch
from assay.frameworks.torch_graphs import Graphs
from assay.lane_state import ROUNDING, LaneState
from assay.sparse import Sparse, places
from assay.spec import TensorSpec
from assay.torch_cases.names import function_of
from assay.wire import DTYPES, UNSUPPORTED, Stop, refuse

# Bytes that a lane on a shared GPU may cache for its next case (kKeptBytes of src/cli/gpu_seats.cc).
KEPT_BYTES = 1 << 29
# A result that perturbed operations move by more units than this is one of terms that cancel.
CANCELLED = 4
MEMORY_FORMATS = ("channels_last", "channels_last_3d", "contiguous_format", "preserve_format")
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")

# A kernel that another one hides. PyTorch itself replaces those of the device `meta`.
_INACTIVE = re.compile(r"^(?!Meta )\w+ \(inactive\)", re.M)


class TorchFramework(Graphs, Framework):
    """PyTorch on the CPU, a CUDA device, or another device, which is reached through the host."""

    name = "torch"
    _NO_KERNEL = re.compile(
        r"not implemented for '|Could not run '.*' with arguments from"
        r"|not supported for (?:Half|BFloat16|dtype)|_cpu\" not implemented|not compiled with CUDA"
        r"|expected scalar type (?:Half|BFloat16|Float) but found|conversion is not supported on CPU"
        r"|(?:is|are) not supported on CUDA|Tensor is not supported$|not supported for Long"
    )
    _OUT_OF_MEMORY = re.compile(r"[Oo]ut of memory|can't allocate memory|not enough memory")
    _NEEDED = re.compile(
        r"Tried to allocate ([\d.]+) (\w+)\..*Of the allocated memory ([\d.]+) (\w+) is allocated by PyTorch",
        re.DOTALL,
    )
    _left = 0  # bytes of tensors that earlier cases have left on the GPU

    def __init__(self) -> None:
        import torch
        import torch.utils._device  # before the fork

        self.torch = torch
        self.version: str = torch.__version__
        self.tensor_type = torch.Tensor
        self.dtypes = {name: getattr(torch, name) for name in DTYPES if hasattr(torch, name)}
        self._names = {dtype: name for name, dtype in self.dtypes.items()}
        # grad() ends in run_backward(). Before that it checks shapes, which are known to be right here: it
        # imports 487 modules (0.4 s) and takes 5 µs a call.
        engine = getattr(torch.autograd.Variable, "_execution_engine", None)
        self._run_backward = getattr(engine, "run_backward", None)
        self._empty = torch.empty
        self._stack = torch.stack  # before the modules of a lane replace it
        self._strided = torch.strided
        self._device = "cpu"
        self._on_gpu = False
        self._generators = [torch.default_generator]

    def devices(self) -> list[str]:
        """The device kinds of the build and of what was imported after it (assay.extensions)."""
        torch = self.torch
        kinds = ["gpu"] if torch.backends.cuda.is_built() else []
        private = torch._C._get_privateuse1_backend_name()
        for kind in (private, "xpu", "mps"):
            module = getattr(torch, kind, None)
            if kind != "privateuseone" and module is not None and module.is_available():
                kinds.append(kind)
        return [*kinds, "cpu"]

    def opened(self) -> list[str]:
        """Whether a module has initialised CUDA."""
        return ["cuda"] if self.torch.cuda.is_initialized() else []

    def list_functions(self) -> None:
        """Lists PyTorch's functions before a module puts others in their places; PyTorch keeps the list."""
        self.torch.overrides.get_testing_overrides()

    def replaced(self) -> list[str]:
        """PyTorch's own operators whose kernels a module has replaced, from the dispatcher's tables."""
        dispatcher = self.torch._C
        names = [name for name in dispatcher._dispatch_get_all_op_names() if name.startswith("aten::")]
        return [name for name in names if _INACTIVE.search(dispatcher._dispatch_dump(name))]

    def start(self, device: str) -> None:
        self._device = device.replace("gpu", "cuda")
        self._on_gpu = self._device.startswith("cuda")
        if self._on_gpu:
            self._empty = partial(self.torch.empty, device=self._device)
            self._start_gpu(int(device.split(":")[1]))
        elif self._device != "cpu":
            self._empty = partial(self.torch.empty, device="cpu")
            self.torch.set_default_device(self._device)
        self.torch.set_num_threads(1)
        if os.environ.get("FLAGS_cudnn_deterministic", "").lower() in ("1", "true"):
            # As Paddle's lane, which reads the variable itself. What has no such algorithm only warns.
            self.torch.use_deterministic_algorithms(True, warn_only=True)
        self.state = self._lane_state()

    @contextmanager
    def wide_default(self) -> Iterator[None]:
        """A context in which tensors of the default dtype have float64."""
        usual = self.torch.get_default_dtype()
        self.torch.set_default_dtype(self.torch.float64)
        try:
            yield
        finally:
            self.torch.set_default_dtype(usual)

    def _lane_state(self) -> LaneState:
        torch, kind = self.torch, self._device.split(":")[0]
        return LaneState(
            {
                "gradient mode": (torch.is_grad_enabled, torch.set_grad_enabled),
                "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
                "autocast": (
                    lambda: torch.is_autocast_enabled(kind),
                    lambda on: torch.set_autocast_enabled(kind, on),
                ),
                "deterministic mode": (
                    lambda: (
                        torch.are_deterministic_algorithms_enabled(),
                        torch.is_deterministic_algorithms_warn_only_enabled(),
                    ),
                    lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1]),
                ),
                "number of threads": (torch.get_num_threads, torch.set_num_threads),
                "default device": (
                    lambda: torch.utils._device.CURRENT_DEVICE,
                    torch.set_default_device,
                ),
                "rounding mode": ROUNDING,
            }
        )

    def place(self, name: str) -> Any:
        """The lane's own device for any GPU that a case names."""
        return self._device if name.split(":")[0] in ("gpu", "cuda") else name

    def placed(self, tensor: Any) -> Any:
        """The tensor on the lane's device, if that is reached through the host."""
        return tensor if self._on_gpu or self._device == "cpu" else tensor.to(self._device)

    def _start_gpu(self, number: int) -> None:
        torch = self.torch
        torch.cuda.set_device(number)
        torch.cuda.init()
        # Tensors that a function creates must lie on the device of its arguments. A default device wraps
        # every call in Python and takes a quarter of the time of small cases. The old default type is read in
        # C.
        if hasattr(torch, "set_default_tensor_type"):
            torch.set_default_tensor_type(torch.cuda.FloatTensor)
        else:
            torch.set_default_device(self._device)
        self._generators.append(torch.cuda.default_generators[number])
        # A separate thread for the GPU's gradients costs more than most backward passes of a case.
        torch.autograd.set_multithreading_enabled(False)
        # Results need the precision of their dtype, as on a CPU. By default cuBLAS adds up partial sums of
        # half products in half precision.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    def warm(self) -> None:
        """Runs common kernels. A kernel's first call takes 10 to 20 ms, the first matrix product 0.1 s."""
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
        """A clock of CUDA events."""
        cuda = self.torch.cuda
        return Stopwatch(cuda.Event, cuda.synchronize) if self._on_gpu else None

    def seed(self, seed: int) -> None:
        if not self._on_gpu and self._device != "cpu":
            self.torch.manual_seed(seed)
            return
        for generator in self._generators:
            generator.manual_seed(seed)  # torch.manual_seed takes 112 µs

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self._empty(shape, dtype=self.dtypes[dtype])

    def adopt(self, capsule: Any) -> Any:
        """A tensor from a DLPack capsule, without a copy."""
        return self.torch.from_dlpack(capsule)

    def release(self) -> None:
        """Empties the CUDA cache if it holds more than KEPT_BYTES."""
        if not self._on_gpu:
            return
        # memory_reserved() would first build a flat dict of all statistics.
        said = self.torch.cuda.memory_stats_as_nested_dict()  # empty before the first call on the GPU
        self._left = said["allocated_bytes"]["all"]["current"] if said else 0
        if said and said["reserved_bytes"]["all"]["current"] > KEPT_BYTES:
            self.torch.cuda.empty_cache()

    def peak_kb(self) -> int:
        if not self._on_gpu:
            return 0
        cuda = self.torch.cuda
        peak = cuda.max_memory_allocated()
        cuda.reset_peak_memory_stats()
        return peak >> 10

    def needed_kb(self, error: BaseException) -> int:
        """What the message says, without tensors of earlier cases."""
        found = self._NEEDED.search(str(error))
        if found is None:
            return 0
        tried, tried_unit, held, held_unit = found.groups()
        bytes_of = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
        needed = float(tried) * bytes_of[tried_unit] + float(held) * bytes_of[held_unit] - self._left
        return max(0, int(needed)) >> 10

    def resolve(self, api: str) -> Callable[..., Any]:
        """PyTorch's own function. Raises Stop for a name that a case may not use."""
        from assay import kernel  # after PyTorch: it needs assay.reference

        return kernel.function_of(api) if kernel.is_kernel(api) else function_of(self.torch, api)

    def want_gradient(self, tensor: Any) -> None:
        tensor.requires_grad_()

    def writable(self, tensor: Any) -> Any:
        return tensor.clone()

    def strides(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.stride())

    def as_layout(self, tensor: Any, number: int) -> Any:
        """The same values transposed, strided at an offset, or both, by `number`. Never contiguous."""
        axes, shape = range(tensor.ndim)[::-1], tuple(tensor.shape)
        turned = number % 3 < 2
        extents = shape[::-1] if turned else shape
        with self.torch.no_grad():
            view = tensor.new_zeros(extents).permute(*axes) if turned else tensor
            if number % 3 or view.is_contiguous():
                view = tensor.new_zeros((*extents, 2))[..., 1]
                view = view.permute(*axes) if turned else view
            return view.copy_(tensor)

    def stacked(self, tensor: Any) -> Any:
        return self._stack([tensor, tensor], -1)

    def equal(self, left: Any, right: Any) -> bool:
        """Whether two tensors of one shape have equal elements; NaN equals NaN."""
        return bool(((left == right) | ((left != left) & (right != right))).all())

    def widened(self, tensor: Any, dtype: str) -> Any:
        """The tensor in a wider dtype."""
        return tensor.to(self.dtypes[dtype])

    def moved(self, tensor: Any, unit: float, seed: int, zeros_too: bool) -> Any:
        """The perturbed tensor: every element times 1 ± (½ … 1) · unit; zeros become ± (½ … 1) · unit if
        `zeros_too`.

        Real and imaginary parts are perturbed independently, because they are rounded independently. A common
        factor would keep the angle, and the real part of a product would keep its digits."""
        torch = self.torch
        if tensor.is_complex():
            parts = self.moved(torch.view_as_real(tensor.resolve_conj()), unit, seed, zeros_too)
            return torch.view_as_complex(parts)
        half = abs(unit) / 2
        shift = self._drawn(tensor, -half, half, seed)
        shift += torch.copysign(torch.full((), half, dtype=shift.dtype, device=shift.device), shift)
        if unit < 0:
            shift.neg_()
        moved = tensor * (1 + shift)
        return torch.where(tensor == 0, shift.to(tensor.dtype), moved) if zeros_too else moved

    def _drawn(self, like: Any, low: float, high: float, seed: int) -> Any:
        generator = self.torch.Generator(like.device).manual_seed(seed)
        empty = self.torch.empty(like.shape, dtype=self.torch.float64, device=like.device)
        return empty.uniform_(low, high, generator=generator)

    def rounding(self, unit: float, seed: int) -> Any:
        """A context in which every result of an operation is multiplied by 1 ± (½ … 1) · unit: of many
        elements, none should be moved by next to nothing in each of a few evaluations."""
        return rounding(self.torch, lambda tensor, number: self.moved(tensor, unit, seed + number, False))

    def cancelled(self, right: Any, value: Any, unit: float) -> Any:
        """`value` where it is farther from `right` than a result without cancellation, else `right`. `right`
        itself, if no element is."""
        from torch.utils._python_dispatch import _disable_current_modes

        if not (right.is_floating_point() or right.is_complex()):
            return right
        with _disable_current_modes():  # rounding() is one
            value, known = value.detach(), right.detach()
            return self._chosen((value - known).abs() > CANCELLED * unit * known.abs(), value, right)

    def _chosen(self, where: Any, value: Any, right: Any) -> Any:
        return self.torch.where(where, value.detach(), right.detach()) if where.any() else right

    def smaller(self, tensor: Any) -> Any:
        """The fourth root of each magnitude, with the element's sign or angle."""
        return self.torch.sgn(tensor) * tensor.abs().sqrt().sqrt()

    def without_nan(self, right: Any, value: Any) -> Any:
        """`value` where it is finite and `right` is NaN, else `right`. `right` itself, if no element is."""
        return self._chosen(self.torch.isnan(right) & self.torch.isfinite(value), value, right)

    def differentiable(self, tensor: Any) -> bool:
        return tensor.requires_grad

    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        """The autograd engine's gradients; the graph is freed. An output may lie on another device."""
        if self._device != "cpu":
            pairs = zip(outputs, upstream, strict=True)
            upstream = [each.to(output.device) for output, each in pairs]
        if self._run_backward is None:
            return list(self.torch.autograd.grad(outputs, inputs, upstream, allow_unused=True))
        return list(
            self._run_backward(
                tuple(outputs),
                tuple(upstream),
                False,  # the graph is used once
                False,
                tuple(inputs),
                allow_unreachable=True,
                accumulate_grad=False,
            )
        )

    def autocast(self) -> Any:
        """torch.autocast on the lane's device."""
        return self.torch.autocast(self._device.split(":")[0])

    def be_deterministic(self) -> None:
        """Deterministic algorithms from now on; operations without one raise an error."""
        self.torch.use_deterministic_algorithms(True)
        self.state.learn()

    def use_threads(self, count: int) -> None:
        """The number of threads of operations."""
        self.torch.set_num_threads(count)
        self.state.learn()

    def dense(self, tensor: Any) -> Dense:
        """The elements, with conjugation and negation applied."""
        if tensor.requires_grad:  # a lent tensor must not keep its graph alive
            tensor = tensor.detach()
        if not (tensor.is_cpu or tensor.is_cuda):
            tensor = tensor.cpu()
        if tensor.layout is not self._strided:
            tensor = tensor.to_dense()
        if tensor._is_zerotensor():  # its data pointer is 0
            tensor = tensor.clone()
        if tensor.is_conj():
            tensor = tensor.resolve_conj()
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        tensor = tensor.contiguous()
        if self._on_gpu and tensor.is_cpu:  # the GPU may still be copying its elements (non_blocking)
            self.torch.cuda.synchronize()
        dtype, shape = self._names.get(tensor.dtype), tuple(tensor.shape)
        if dtype is None:
            raise Stop(UNSUPPORTED, f"assay does not compare results of {tensor.dtype}")
        return Dense(tensor, tensor.data_ptr(), tensor.numel(), dtype, shape, tensor.is_cuda)

    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Sparse:
        """An assay.sparse.Sparse, because PyTorch's sparse tensors have few operations and gradients."""
        held = places(spec.shape, spec.index, layout)
        values = tensor.reshape(held.rows, *held.row)[self.torch.tensor(held.taken, dtype=self.torch.int64)]
        indices = self.torch.tensor(held.indices, dtype=self.torch.int64)
        indices = indices.reshape(len(held.indices), len(held.taken))
        return Sparse(indices, values, spec.shape, "csr" if layout == "csr" else "coo")

    def sparse_tensor(self, sparse: Sparse) -> Any:
        make = self.torch.sparse_coo_tensor
        return make(sparse.indices, sparse.values, sparse.shape, is_coalesced=True, check_invariants=False)

    def strided(self, tensor: Any, spec: TensorSpec) -> Any:
        memory = self.torch.zeros(spec.storage(), dtype=tensor.dtype)
        first = tensor[tuple(slice(extent) for extent in spec.apart())]
        self.torch.as_strided(memory, spec.apart(), spec.strides).copy_(first)
        return self.torch.as_strided(memory, spec.shape, spec.strides)

    def memory_format(self, name: str) -> Any:
        if name not in (*MEMORY_FORMATS, *LAYOUTS):
            refuse(f"there is no memory format {name}; there are {', '.join((*MEMORY_FORMATS, *LAYOUTS))}")
        return getattr(self.torch, name)

    def laid_out(self, results: Any, memory_format: Any) -> bool:
        """Whether a result has the strides of a memory format. torch.preserve_format promises none."""
        return memory_format is self.torch.preserve_format or results.is_contiguous(
            memory_format=memory_format
        )

    def optimizer(self, make: Any, args: Any, kwargs: Any, value: Any) -> tuple[Any, Any]:
        parameter = self.torch.nn.Parameter(value.detach().clone())
        return parameter, make([parameter], *args, **kwargs)

    def dtype_name(self, dtype: Any) -> str | None:
        return self._names.get(dtype) if isinstance(dtype, self.torch.dtype) else None


def create() -> TorchFramework:
    """The wrapper of the installed PyTorch."""
    return TorchFramework()
