"""PaddlePaddle as a lane."""

import contextlib
import ctypes
import gc
import inspect
import os
import pathlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from assay.frameworks import Dense, Framework, look_up
from assay.frameworks.stopwatch import Stopwatch
from assay.lane_state import ROUNDING, LaneState, threads_of
from assay.sparse import compressed, places
from assay.spec import TensorSpec, layout_of
from assay.wire import DTYPES, SKIPPED, Stop

# The parameters of paddle.grad() in versions whose inner function _plain_grad() may call.
GRAD_PARAMETERS = tuple(
    "outputs inputs grad_outputs retain_graph create_graph only_inputs allow_unused no_grad_vars "
    "dump_backward_graph_path".split()
)
MOST_GRAPHS = 64  # compiled graphs that are kept
MOST_AXES = 6  # the limit of indexing and transposing


class PaddleFramework(Framework):
    """PaddlePaddle on the CPU, a GPU or a custom device."""

    name = "paddle"
    # Messages that mean "this build has no such kernel", which is not a failure.
    _NO_KERNEL = re.compile(
        r"is not registered|only supports? GPU|not compiled with CUDA|only support(?:ed|s)? (?:on|in) GPU"
        r"|does not support (?:CPU|cpu)|Backend::CPU|no kernel|support following DataTypes"
        r"|Do not support .* for cpu kernel|eager\.ops\.legacy' has no attribute|NOT supported quant int8"
        r"|[Nn]ot support CPU kernel|only supports? CUDA"
        r"|No available device found|in CPU only version|in CPU-only PaddlePaddle"
        r"|There are no kernels which are registered|FLAGS_cudnn\w+ cannot get its value"
    )
    _OUT_OF_MEMORY = re.compile(r"ResourceExhausted|[Oo]ut of memory|Fail to alloc memory")

    def __init__(self) -> None:
        os.environ.setdefault("GLOG_minloglevel", "2")
        import paddle

        # Paddle's signal handler prints a trace and delays the end of a crashed lane by 30 ms.
        paddle.disable_signal_handler()
        self.paddle = paddle
        open_mkl(paddle.__file__)
        self.version: str = paddle.__version__
        self.tensor_type = paddle.Tensor
        self.dtypes = {name: getattr(paddle, name) for name in DTYPES if hasattr(paddle, name)}
        self._names = {dtype: name for name, dtype in self.dtypes.items()}
        self._gradients = self._plain_grad()
        self._seed = paddle.seed
        self._empty = paddle.empty
        self._graphs: list[Any] = []
        self._on_gpu = False
        self._device = "cpu"

    def devices(self) -> list[str]:
        """The device kinds of the build, custom devices first."""
        device = self.paddle.device
        kinds = ["xpu"] if device.is_compiled_with_xpu() else []
        kinds += device.get_all_custom_device_type() or []
        return [*kinds, *(["gpu"] if device.is_compiled_with_cuda() else []), "cpu"]

    def notes(self) -> dict[str, str]:
        """Whether static graphs are compiled by CINN."""
        if self.paddle.is_compiled_with_cinn():
            return {"to_static": f"Paddle {self.version}: graphs are compiled by CINN"}
        return {"to_static": f"Paddle {self.version} was built without CINN: graphs run in its own executor"}

    def start(self, device: str) -> None:
        """Selects the device.

        On a GPU, Paddle's streams wait for the default stream, where inputs are filled and results are
        copied. That path has not run yet on a GPU build of Paddle."""
        self._device = device
        self._on_gpu = device.startswith("gpu")
        if self._on_gpu:
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # results need the precision of their dtype
        self.paddle.set_device(device)
        if not self._on_gpu:
            self._empty = self._plain_empty()
        if device == "cpu":
            self._seed = self._plain_seed()
        self.state = self._lane_state()

    def _lane_state(self) -> LaneState:
        paddle = self.paddle
        tracer = paddle.base.framework._dygraph_tracer
        flags = paddle.base.core.globals()
        modes = [name for name in flags.keys() if "determin" in name or name == "FLAGS_check_nan_inf"]  # noqa: SIM118
        openmp = pathlib.Path(paddle.__file__).parent / "libs/libiomp5.so"

        def set_static(dynamic: bool) -> None:
            (paddle.disable_static if dynamic else paddle.enable_static)()

        def set_amp(level: Any) -> None:
            tracer()._amp_level = level

        return LaneState(  # static mode first: without it there is a tracer
            {
                "static mode": (paddle.in_dynamic_mode, set_static),
                "gradient mode": (paddle.is_grad_enabled, paddle.set_grad_enabled),
                "default dtype": (paddle.get_default_dtype, paddle.set_default_dtype),
                "autocast": (lambda: getattr(tracer(), "_amp_level", None), set_amp),
                "deterministic mode": (lambda: {name: flags[name] for name in modes}, paddle.set_flags),
                "number of threads": (threads_of(openmp), paddle.base.core.set_num_threads),
                "default device": (paddle.get_device, paddle.set_device),
                "rounding mode": ROUNDING,
            }
        )

    def placed(self, tensor: Any) -> Any:
        """The tensor on a custom device. It has not run yet: no build here has one."""
        return tensor if self._on_gpu or self._device == "cpu" else tensor.to(self._device)

    def _plain_grad(self) -> Callable[..., Any]:
        """The function that paddle.grad() calls. The checks and decorators of grad() take 5 µs. A version of
        Paddle without that function, or with other parameters of grad(), gets grad() itself."""
        grad = self.paddle.grad
        operation = getattr(self.paddle.base.core.eager, "run_partial_grad", None)
        if operation is None or tuple(inspect.signature(grad).parameters) != GRAD_PARAMETERS:
            return partial(grad, retain_graph=False, allow_unused=True)
        return lambda outputs, inputs, upstream: operation(
            outputs, inputs, upstream, False, False, True, True, [], None
        )

    def _plain_seed(self) -> Callable[[int], Any]:
        """The function that paddle.seed() calls on a CPU, which has one generator for the life of the
        process. A version without that function gets paddle.seed()."""
        try:
            return self.paddle.base.core.default_cpu_generator().manual_seed
        except AttributeError:
            return self.paddle.seed

    def _plain_empty(self) -> Callable[..., Any]:
        """The function that paddle.empty() calls on a CPU. Checks and conversions take two thirds of the time
        of empty(). A version without that function gets paddle.empty()."""
        paddle = self.paddle
        try:
            place, operation = paddle.CPUPlace(), paddle._C_ops.empty
            operation((2, 0), paddle.float32, place)
        except Exception:
            return paddle.empty
        return lambda shape, dtype: operation(shape, dtype, place)

    def adopt(self, capsule: Any) -> Any:
        """A tensor from a DLPack capsule, without a copy."""
        return self.paddle.utils.dlpack.from_dlpack(capsule)

    def release(self) -> None:
        if self._on_gpu:
            self.paddle.device.cuda.empty_cache()

    def stopwatch(self) -> Stopwatch | None:
        """A clock of device events. It has not run yet on a GPU build of Paddle."""
        device = self.paddle.device
        return Stopwatch(device.Event, device.synchronize) if self._on_gpu else None

    def seed(self, seed: int) -> None:
        self._seed(seed)

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        return self._empty(shape, self.dtypes[dtype])

    def resolve(self, api: str) -> Callable[..., Any]:
        return look_up(self.paddle, api)

    def custom_operator(self, name: str) -> Callable[..., Any] | None:
        """An operator that a loaded extension registered. One result is returned alone."""
        if name not in self.paddle.base.core.get_all_op_names():
            return None
        run = self.paddle._C_ops._run_custom_op

        def call(*args: Any, **kwargs: Any) -> Any:
            found = run(name, *args, **kwargs)
            return found[0] if isinstance(found, list) and len(found) == 1 else found

        return call

    def want_gradient(self, tensor: Any) -> None:
        tensor.stop_gradient = False

    def writable(self, tensor: Any) -> Any:
        """A copy. Paddle rejects in-place calls on a differentiable leaf."""
        return self.paddle.assign(tensor)

    def stacked(self, tensor: Any) -> Any:
        """paddle.stack; None if the result would have too many axes."""
        return None if tensor.ndim == MOST_AXES else self.paddle.stack([tensor, tensor], -1)

    def equal(self, left: Any, right: Any) -> bool:
        """Whether two tensors of one shape have equal bytes. paddle.equal takes tiny numbers for equal."""
        return left.numpy().tobytes() == right.numpy().tobytes()

    def widened(self, tensor: Any, dtype: str) -> Any:
        """The tensor in a wider dtype."""
        return tensor.astype(self.dtypes[dtype])

    def as_layout(self, tensor: Any, number: int) -> Any:
        """The same values transposed, strided at an offset, or both, by `number`. A dtype without the kernels
        for that stays contiguous."""
        paddle = self.paddle
        if tensor.ndim > MOST_AXES:
            return tensor
        try:
            with paddle.no_grad():
                axes = list(range(tensor.ndim))[::-1]
                turned, strided = layout_of(tensor.shape, number)
                if turned:
                    tensor = paddle.transpose(tensor, axes).contiguous()
                if tensor.ndim == MOST_AXES:  # stack() would exceed the limit
                    tensor = paddle.concat([tensor[:1], tensor])[1:]
                elif strided:
                    tensor = paddle.stack([paddle.zeros_like(tensor), tensor], -1)[..., 1]
                return paddle.transpose(tensor, axes) if turned else tensor
        except Exception as error:
            if self.no_kernel(error):
                return tensor
            raise

    def differentiable(self, tensor: Any) -> bool:
        return not tensor.stop_gradient

    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        """The gradients by paddle.grad(). Outputs that are inputs or occur twice are copied first: Paddle
        returns None for the former and rejects the latter."""
        given = {id(tensor) for tensor in (*inputs, *outputs)}
        if len(given) < len(inputs) + len(outputs):
            outputs = [
                self.paddle.assign(output)
                if any(output is tensor for tensor in (*inputs, *outputs[:place]))
                else output
                for place, output in enumerate(outputs)
            ]
        return self._gradients(outputs, inputs, upstream)

    def autocast(self) -> Any:
        """paddle.amp.auto_cast. Raises Stop on the CPU, where it does nothing."""
        if self.paddle.get_device() == "cpu":
            raise Stop(SKIPPED, f"Paddle {self.version} has no automatic mixed precision on the CPU")
        return self.paddle.amp.auto_cast()

    def compiled(self, function: Callable[..., Any], api: str) -> Callable[..., Any]:
        """A function that runs the API as a static graph (paddle.jit.to_static)."""
        jit, clear = self.paddle.jit, self.paddle.base.core.clear_executor_cache
        backend = "CINN" if self.paddle.is_compiled_with_cinn() else None
        method = api.removeprefix("paddle.Tensor.") if api.startswith("paddle.Tensor.") else None

        def call(*args: Any, **kwargs: Any) -> Any:
            # Every case needs its own graph, because a graph depends on the shapes of its inputs. Paddle
            # keeps 0.7 MB for each. All graphs are freed together between two cases: freeing one while
            # another is built or run may crash.
            if len(self._graphs) == MOST_GRAPHS:
                self._graphs.clear()
                gc.collect()
                clear()
            tensors: list[Any] = []
            fixed = jit.not_to_static(_without_tensors((args, kwargs), self.tensor_type, tensors))
            source = _method_call(method, fixed) if method else _plain_call(function, fixed)
            graph = jit.to_static(source, full_graph=True, backend=backend)
            self._graphs.append(graph)
            try:
                return graph(tensors)
            except AssertionError as error:
                if "dynamic graph mode" not in str(error):
                    raise
                raise Stop(SKIPPED, f"Paddle has {api} in dynamic graphs only") from None

        return call

    def dense(self, tensor: Any) -> Dense:
        """The elements of a dense, sparse or selected-rows tensor. Raises ValueError for a negative
        extent."""
        if not tensor.is_dense():
            tensor = self._selected_rows(tensor) if tensor.is_selected_rows() else tensor.to_dense()
        if not tensor.is_contiguous():  # contiguous() of a differentiated tensor breaks its backward
            tensor = tensor.contiguous() if tensor.stop_gradient else self.paddle.assign(tensor.detach())
        if not self._on_gpu and self._device != "cpu":
            tensor = tensor.cpu()
        dtype = self._names[tensor.dtype]
        shape = tensor.shape
        count = 1
        for extent in shape:
            count *= extent
            if extent < 0:
                raise ValueError(f"Paddle returned a tensor of shape {list(shape)}")
        pointer = tensor.data_ptr() if count else 0
        if pointer is None:  # Paddle did not set the result: stand in uninitialised memory of its shape
            tensor = self._empty(shape, tensor.dtype)
            pointer = tensor.data_ptr()
        return Dense(tensor, pointer, count, dtype, shape, self._on_gpu and tensor.place.is_gpu_place())

    def sparse(self, tensor: Any, spec: TensorSpec, layout: str) -> Any:
        """A Paddle COO or CSR tensor. Paddle's conversions to CSR have no gradient."""
        paddle = self.paddle
        held = places(spec.shape, spec.index, layout)
        count = len(held.taken)
        taken = paddle.to_tensor(held.taken, dtype="int64").reshape([count])
        values = paddle.index_select(tensor.reshape([held.rows, *held.row]), taken)
        if layout == "csr":
            crows, cols = (
                paddle.to_tensor(each, dtype="int64") for each in compressed(held.indices, spec.shape)
            )
            return paddle.sparse.sparse_csr_tensor(crows, cols, values, spec.shape)
        indices = paddle.to_tensor(held.indices, dtype="int64").reshape([len(held.indices), count])
        constant = tensor.stop_gradient
        return paddle.sparse.sparse_coo_tensor(indices, values, spec.shape, stop_gradient=constant)

    def sparse_parts(self, tensor: Any) -> dict[str, Any] | None:
        """The parts of a COO or CSR tensor; COO entries are sorted by index. A tensor of no kind, which is an
        optional result that was not made, counts as None."""
        if tensor.is_dense() or tensor.is_selected_rows():
            return None
        if not tensor.is_sparse():
            return {"": None}
        shape = list(tensor.shape)
        if tensor.is_sparse_csr():
            crows, cols = tensor.crows(), tensor.cols()
            return {
                "layout": "csr", "crows": crows, "cols": cols, "values": tensor.values(), "shape": shape
            }  # fmt: skip
        indices, values = tensor.indices(), tensor.values()
        if indices.ndim != 2:  # invalid: compared as it is
            return {"layout": "coo", "indices": indices, "values": values, "shape": shape}
        place = self.paddle.zeros([indices.shape[1]], "int64")
        for axis in range(indices.shape[0]):
            place = place * shape[axis] + indices[axis].astype("int64")
        order = self.paddle.argsort(place, stable=True)
        indices = self.paddle.index_select(indices, order, 1)
        values = self.paddle.index_select(values, order)
        return {"layout": "coo", "indices": indices, "values": values, "shape": shape}

    def strided(self, tensor: Any, spec: TensorSpec) -> Any:
        memory = self.paddle.zeros([spec.storage()], tensor.dtype)
        if spec.size:
            apart = list(spec.apart())
            first = self.paddle.slice(tensor, list(range(len(apart))), [0] * len(apart), apart)
            self.paddle.as_strided(memory, apart, list(spec.strides))[...] = first
        return self.paddle.as_strided(memory, list(spec.shape), list(spec.strides))

    def place(self, name: str) -> Any:
        """The CPU's place, or the lane's own for any other device."""
        if name == "cpu":
            return self.paddle.CPUPlace()
        return self.paddle.empty([0]).place

    def parameters(self, layer: Any) -> dict[str, Any]:
        """A layer's parameters by name; none of an object that is no layer."""
        return dict(layer.named_parameters()) if isinstance(layer, self.paddle.nn.Layer) else {}

    def optimizer(self, make: Any, args: Any, kwargs: Any, value: Any) -> tuple[Any, Any]:
        parameter = self.paddle.create_parameter(value.shape, value.dtype)
        parameter.set_value(value)
        return parameter, make(*args, parameters=[parameter], **kwargs)

    def _selected_rows(self, tensor: Any) -> Any:
        """The dense form of a gradient that holds some rows, possibly repeated."""
        rows = tensor.get_selected_rows()
        values = self.paddle.to_tensor(rows.get_tensor())
        whole = self.paddle.zeros([rows.height(), *values.shape[1:]], values.dtype)
        return self.paddle.index_add(whole, self.paddle.to_tensor(rows.rows()), 0, values)

    def dtype_name(self, dtype: Any) -> str | None:
        return self._names.get(dtype) if isinstance(dtype, self.paddle.dtype) else None


def open_mkl(package: str) -> None:
    """Opens the MKL library of the package folder in the fork server. Otherwise the first operation of each
    lane opens it, which takes 5 ms. A build without that library is left alone."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(os.path.join(os.path.dirname(package), "libs", "libmklml_intel.so"))


def _without_tensors(value: Any, tensor_type: type, tensors: list[Any]) -> Callable[[list[Any]], Any]:
    """A function that rebuilds `value` from its tensors, which are appended to `tensors`.

    A graph takes only tensors. Other arguments, such as slices, become constants of it."""
    if isinstance(value, tensor_type):
        place = len(tensors)
        tensors.append(value)
        return lambda given: given[place]
    if isinstance(value, list | tuple):
        parts = [_without_tensors(part, tensor_type, tensors) for part in value]
        return lambda given: type(value)(part(given) for part in parts)
    if isinstance(value, dict):
        named = {name: _without_tensors(part, tensor_type, tensors) for name, part in value.items()}
        return lambda given: {name: part(given) for name, part in named.items()}
    if isinstance(value, slice):
        ends = _without_tensors((value.start, value.stop, value.step), tensor_type, tensors)
        return lambda given: slice(*ends(given))
    return lambda given: value


def _plain_call(function: Callable[..., Any], fixed: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A Python function for to_static(), which reads the source; built-in functions have none."""

    def call(tensors: Any) -> Any:
        args, kwargs = fixed(tensors)
        return function(*args, **kwargs)

    return call


def _method_call(method: str, fixed: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A Python function that calls a method. In a graph the method belongs to another class than Tensor."""

    def call(tensors: Any) -> Any:
        args, kwargs = fixed(tensors)
        return getattr(args[0], method)(*args[1:], **kwargs)

    return call


def create() -> PaddleFramework:
    """The wrapper of the installed Paddle."""
    return PaddleFramework()
