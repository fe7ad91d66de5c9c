"""The calls of a Paddle program: its public functions and the methods of its tensors are wrapped at import.

Of calls inside of calls only the outermost counts. A call in a static graph counts when the graph is made.
"""

import contextlib
import functools
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from assay.capture.recorder import Case, Recorder, recorder_of
from assay.capture.summaries import Summaries
from assay.capture.variants import Known, TensorKey
from assay.names import callable_name
from assay.registry import DUNDERS
from assay.torch_cases.texts import Inexpressible, text_of
from assay.wire import Stop

HOMES = (
    "paddle", "paddle.nn.functional", "paddle.linalg", "paddle.fft", "paddle.signal", "paddle.geometric",
    "paddle.incubate.nn.functional", "paddle.vision.ops", "paddle.Tensor",
)  # fmt: skip


class PaddleSummaries(Summaries):
    """Of Paddle's tensors. The host computes them, and waits for a device whenever a summary is due."""

    names_repeats = True

    def __init__(self, paddle: Any, found_nan: Callable[[Any, bool], None], local: Any) -> None:
        super().__init__(paddle, found_nan)
        self.local = local

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """A context in which calls are not recorded."""
        inside, self.local.inside = getattr(self.local, "inside", False), True
        try:
            with self.torch.no_grad():
                yield
        finally:
            self.local.inside = inside

    def _has_elements(self, tensor: Any) -> bool:
        return tensor.is_dense() and tensor.size > 0

    def _memory(self, tensor: Any) -> tuple[int, int | None]:
        return tensor.data_ptr(), tensor.inplace_version

    def _summary(self, tensor: Any, structure: bool) -> Any:
        array = (tensor.astype("float64") if tensor.is_floating_point() else tensor).numpy()
        numpy = sys.modules["numpy"]
        nan, inf = numpy.isnan(array).sum(), numpy.isinf(array).sum()
        array = numpy.nan_to_num(array, posinf=0.0, neginf=0.0) if nan or inf else array
        numbers = [array.min(), array.max(), nan, inf, array.size - numpy.count_nonzero(array), array.size]
        if structure:
            long = array.ndim and array.shape[-1] > 2
            numbers.append(long and (array[..., 1:] >= array[..., :-1]).all())
            whole = not tensor.is_floating_point()
            numbers.append(len(numpy.unique(array)) / array.size if whole else 0)
            for axis in range(0 if whole else array.ndim):
                scales = abs(array).max(tuple(each for each in range(array.ndim) if each != axis))
                numbers += [scales.min(), scales.max()]
        return list(map(float, numbers))

    def _first_nan(self, totals: list[Any]) -> int | None:
        return next((at for at, each in enumerate(totals) if math.isnan(float(each))), None)


class _Calls:
    """The wrapped functions of a process."""

    def __init__(self, paddle: Any, recorder: Recorder) -> None:
        self.paddle = paddle
        self.recorder = recorder
        self.known = Known(recorder)
        self.local = threading.local()
        recorder.after_fork = self.known.clear
        if recorder.options["summaries"]:
            recorder.summaries = PaddleSummaries(paddle, recorder.found_nan, self.local)

    def wrap_all(self) -> None:
        """Puts a wrapper in the place of each public function that a case may call, also where layers have
        imported it."""
        made: dict[int, Any] = {}
        owners = [(home, functools.reduce(getattr, home.split(".")[1:], self.paddle)) for home in HOMES]
        for home, owner in [*owners, ("paddle.Tensor", self.paddle.pir.Value)]:
            for stem in dir(owner):
                function = getattr(owner, stem, None)
                if not inspect.isroutine(function) or stem.startswith("_") and stem not in DUNDERS:
                    continue
                try:
                    wrapper = self.wrapped(callable_name(f"{home}.{stem}"), function)
                    setattr(owner, stem, wrapper)
                except (Stop, AttributeError, TypeError):
                    continue
                if home != "paddle.Tensor":
                    made[id(function)] = wrapper
        for name, module in list(sys.modules.items()):
            if name.startswith("paddle.nn.layer."):
                found = {each: made[id(value)] for each, value in vars(module).items() if id(value) in made}
                vars(module).update(found)
        for rank_ in (1, 2, 3):
            self._wrap_convolution(
                f"paddle.nn.functional.conv{rank_}d", getattr(self.paddle.nn, f"Conv{rank_}D")
            )

    def _wrap_convolution(self, name: str, layer: Any) -> None:
        """Convolution layers call a private function. It is written as the public one."""
        plain = layer.forward

        @functools.wraps(plain)
        def forward(own: Any, x: Any) -> Any:
            if own._padding_mode != "zeros":
                return plain(own, x)
            settings = own._stride, own._padding, own._dilation, own._groups, own._data_format
            args = (x, own.weight, own.bias, *settings)
            return self.called(name, lambda: plain(own, x), args, {}, sys._getframe(1))

        layer.forward = forward

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, counted."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.called(name, lambda: function(*args, **kwargs), args, kwargs, sys._getframe(1))

        return call

    def called(self, name: str, run: Callable[[], Any], args: Any, kwargs: Any, frame: Any) -> Any:
        """The result of a call, which counts unless it is inside of another one."""
        local = self.local
        if getattr(local, "inside", False) or not self.recorder.chosen(self.recorder.step):
            return run()
        local.inside = True
        try:
            given = (*args, *kwargs.values())
            key, text = self.before(name, args, kwargs)
            taken = self.take(key, given)
            result = run()
            try:
                if self.has_tensor(result):
                    case = self.count(name, key, text, given, frame)
                    if self.recorder.summaries is not None:
                        self.recorder.summaries.keep(case, "in", taken)
                        written = self.recorder.summaries.take(result, case.calls, taken)
                        self.recorder.summaries.keep(case, "out", written, taken)
            except Exception as error:  # of the capture: the program goes on
                self.recorder.left_out[f"{name}: {type(error).__name__}"] += 1
            return result
        finally:
            local.inside = False

    def before(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The key of a call, and its text if the key is new; the reason if there is no case."""
        try:
            key = name, self.key(args), *((each, self.key(value)) for each, value in kwargs.items())
            if key in self.known.cases:
                return key, ""
            parts = [self.text(value) for value in args]
            parts += [f"{each}={self.text(value)}" for each, value in kwargs.items() if each != "name"]
            return key, f"{name}({', '.join(parts)})"
        except Exception as error:  # an argument without a text or a hash
            return (name, type(error), str(error)), Inexpressible(str(error))

    def take(self, key: Any, args: Any) -> list[Any]:
        """What is known of the inputs of a call."""
        if self.recorder.summaries is None:
            return []
        case: Case | None = self.known.cases.get(key)
        return self.recorder.summaries.take(args, 1 if case is None else case.calls + 1)

    def count(self, name: str, key: Any, text: Any, args: Any, frame: Any) -> Case:
        """A call that gave tensors."""
        case: Case | None = self.known.cases.get(key)
        if case is None and isinstance(text, str):
            note = {"device": self.device(args)} if self.paddle.in_dynamic_mode() else {"compiled": True}
            case = self.known.new(key, text, note, name)
        elif case is None:
            case = self.known.new(key, "", {"reason": str(text)}, name)
        if not case.calls or self.paddle.in_dynamic_mode():  # the making of a graph is no second call
            self.recorder.count(case, frame)
        return case

    def device(self, value: Any) -> str:
        """The device of the first tensor, also within lists; empty if there is none."""
        if isinstance(value, self.paddle.Tensor):
            return str(value.place).removeprefix("Place(").rstrip(")")
        parts = value if isinstance(value, list | tuple) else ()
        return next(filter(None, map(self.device, parts)), "")

    def has_tensor(self, value: Any) -> bool:
        """Whether it is a tensor, or a list with one."""
        if isinstance(value, list | tuple):
            return any(map(self.has_tensor, value))
        return isinstance(value, self.paddle.Tensor | self.paddle.pir.Value)

    def key(self, value: Any) -> Any:
        """What a case states of an argument, as something with a hash."""
        if isinstance(value, self.paddle.Tensor):
            return TensorKey((tuple(value.shape), value.dtype, *self.strides(value)))
        if isinstance(value, self.paddle.pir.Value):
            return TensorKey(("in a graph", tuple(value.shape), value.dtype))
        if isinstance(value, list | tuple):
            return (type(value), *map(self.key, value))
        if isinstance(value, slice):
            return slice, self.key(value.start), self.key(value.stop), self.key(value.step)
        if isinstance(value, float):
            return type(value), repr(value)
        kept = value is None or isinstance(value, bool | int | str | complex | self.paddle.dtype)
        return (type(value), value) if kept else (type(value),)  # a key keeps no other object alive

    def strides(self, tensor: Any) -> tuple[int, ...]:
        """Those of a tensor that is not contiguous."""
        if not tensor.is_dense():
            raise Inexpressible("a sparse tensor")
        return () if tensor.is_contiguous() else tuple(tensor.get_strides())

    def extents(self, tensor: Any) -> list[int]:
        """Those of a tensor or of a value of a static graph."""
        if -1 in tensor.shape:
            raise Inexpressible("a size that only the run of the graph knows")
        return list(tensor.shape)

    def text(self, value: Any) -> str:
        """An argument in the case language."""
        return text_of(value, self.special)

    def special(self, value: Any) -> str | None:
        """The text of Paddle's own objects."""
        paddle = self.paddle
        if isinstance(value, paddle.Tensor | paddle.pir.Value):
            strides = self.strides(value) if isinstance(value, paddle.Tensor) else ()
            shown = f", strides={list(strides)}" if strides else ""
            return f'Tensor({self.extents(value)}, "{str(value.dtype).removeprefix("paddle.")}"{shown})'
        if isinstance(value, paddle.dtype):
            return f"Dtype({str(value).removeprefix('paddle.')})"
        if isinstance(value, paddle.base.core.Place):
            return "Place(cpu)" if value.is_cpu_place() else "Place(gpu:0)"
        return None


def start(paddle: Any) -> None:
    """Captures this process from now on."""
    recorder = recorder_of("paddle", paddle)
    if recorder is None:
        return
    _Calls(paddle, recorder).wrap_all()
    paddle.jit.ignore_module([sys.modules[__name__]])
    for optimizer in vars(paddle.optimizer).values():
        if isinstance(optimizer, type) and "step" in vars(optimizer):
            optimizer.step = _counted(optimizer.step, recorder)


def _counted(step: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    @functools.wraps(step)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = step(*args, **kwargs)
        recorder.begin_step(recorder.step + 1)
        return result

    return call
