"""The calls of a PyTorch program, seen by a global mode of `__torch_function__`.

The mode sees every public call from Python, however the program has bound the function's name. While it
handles a call it is off, so that calls inside of PyTorch's own functions stay unseen, except when a composite
function is seen for the first time.
"""

import atexit
import importlib
import numbers
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

from assay.capture import compiled, dispatched
from assay.capture.deep import Boundaries
from assay.capture.recorder import Case, Recorder, recorder_of
from assay.capture.summaries import Summaries, is_plain
from assay.capture.variants import Known, TensorKey
from assay.torch_cases.oracle import mapped
from assay.torch_cases.texts import Inexpressible, argument_texts, name_of

# Calls that compute nothing, or that only autograd needs.
_NO_CALLS = frozenset(
    "size dim stride numel is_floating_point is_complex is_contiguous element_size data_ptr "
    "storage_offset requires_grad_ backward register_hook register_post_accumulate_grad_hook "
    "retain_grad get_device ndimension nelement is_nonzero is_shared is_pinned is_inference is_conj "
    "is_neg is_signed is_same_size storage untyped_storage pin_memory share_memory_ has_names "
    "result_type can_cast promote_types is_storage is_tensor is_distributed record_stream __len__ "
    "__repr__ __format__ __hash__ __bool__ __iter__ __reversed__ __dir__ __contains__ __deepcopy__ "
    "__reduce_ex__ __reduce__ __setstate__ __index__ __int__ __float__ __complex__ __dlpack__ "
    "__dlpack_device__ __array__ __array_wrap__ __cuda_array_interface__ _is_view _is_zerotensor "
    "_version unravel_index get_default_dtype set_default_dtype is_grad_enabled "
    "_is_any_autocast_enabled is_autocast_enabled _assert_async broadcast_shapes tensor device from_numpy "
    "frombuffer new_tensor new resize_".split()
)
# Methods that do not read their tensor, which may be memory that nobody has written.
_OVERWRITES = frozenset(
    "copy_ zero_ fill_ uniform_ normal_ random_ exponential_ bernoulli_ log_normal_ geometric_".split()
)
_FLOATING = re.compile(r'(Tensor\(\[[\d, ]*\], )"(float32|float16|bfloat16)"')
MOST_ZEROS = 1 << 20  # elements of a tensor of zeros
# Arguments that make a result random: their draws are no part of what is judged.
_DROPPING = {"dropout_p": 0.0, "dropout": 0.0}
_POSITIONS = {"torch.nn.functional.scaled_dot_product_attention": 4, "torch.lstm": 5, "torch.gru": 5}
_WEIGHTS = {"torch.nn.functional.multi_head_attention_forward": 10}


class _Mode:
    """What the mode does; a subclass of TorchFunctionMode is made when PyTorch is there."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        super().__init__()
        self.torch = torch
        self.recorder = recorder
        self.names: dict[Any, str | None] = {}  # of functions; None: no call
        self.known = Known(recorder)
        self.plain = {torch.Tensor, torch.nn.Parameter}  # and other classes for which is_plain is true
        # A key must not keep any other object alive, such as a process group.
        self.values = {bool, torch.dtype, torch.device, torch.layout, torch.memory_format}
        self.autocast = torch._C._is_any_autocast_enabled
        self.local = threading.local()
        self.summaries = recorder.summaries
        self.active = True  # in the chosen steps
        self.entered = False  # in the main thread
        recorder.after_fork = self.known.clear
        recorder.on_step = self.choose
        self.choose(recorder.step)

    def choose(self, step: int) -> None:
        """Captures in this step, or does not. Outside of the chosen steps the mode is off, if no mode of the
        program's own is above it."""
        self._switch(self.recorder.chosen(step))

    def is_current(self) -> bool:
        """Whether this mode is on, with none above it."""
        return self.torch.overrides._get_current_function_mode() is self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """At the level of the dispatcher, operators are handled like functions."""
        return self.__torch_function__(func, types, args, kwargs)

    def stop(self) -> None:
        """At the end of the program, before PyTorch's own threads end."""
        self._switch(False)

    def _switch(self, on: bool) -> None:
        self.active = on
        if self.active and not self.entered:
            self.entered = True
            self.__enter__()  # type: ignore[attr-defined]
        elif not self.active and self.is_current():
            self.entered = False
            self.__exit__(None, None, None)  # type: ignore[attr-defined]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        names = self.names
        name = names[func] if func in names else self._name(func)
        if name is None or not self.active:
            return func(*args, **kwargs) if kwargs else func(*args)
        try:
            key = (func, *[self.key(value) for value in args])
            if kwargs:
                key = (key, *[(each, self.key(value)) for each, value in kwargs.items()])
            if self.autocast():
                key = key, "autocast"
            case = self.known.cases.get(key)
        except Exception as error:  # a tensor that does not tell its strides, an argument without a hash
            self.recorder.left_out[f"{name.lstrip('?')}: {_reason(error)}"] += 1
            return func(*args, **(kwargs or {}))
        if self.watched is not None:
            text, known = self._text(name, args, kwargs or {})
            result = func(*args, **(kwargs or {}))
            self.watched.append((key, name, *self._cast(text, known, func, args, kwargs or {}, result)))
            return result
        if case is None:
            return self.first(name, func, key, args, kwargs or {}, sys._getframe(1))
        self.recorder.count(case, sys._getframe(1))
        if self.summaries is not None:
            return self.summarised(name, case, func, args, kwargs or {})
        return func(*args, **kwargs) if kwargs else func(*args)

    def summarised(self, name: str, case: Case, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of a call of a known case, with summaries."""
        taken = self._take_inputs(name, case.calls, args, kwargs)
        result = func(*args, **kwargs)
        self._keep(name, case, result, taken)
        return result

    def _take_inputs(self, name: str, calls: int, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        if self.summaries is None:
            return []
        overwrites = name.rpartition(".")[2] in _OVERWRITES
        return self.summaries.take((*args, *kwargs.values()), calls, begin=int(overwrites))

    def _keep(self, name: str, case: Case, result: Any, inputs: Any) -> None:
        self.summaries.keep(case, "in", inputs)
        if ".empty" not in name and ".new_empty" not in name:
            self.summaries.keep(case, "out", self.summaries.take(result, case.calls, inputs), inputs)

    def key(self, value: Any) -> Any:
        """What a case states of an argument, as something with a hash."""
        kind = type(value)
        if kind in self.plain:
            return TensorKey((value.shape, value.dtype, value.stride()))
        if kind is int or kind is str or value is None:
            return value
        if kind is float:
            return kind, repr(value)
        if kind is list or kind is tuple or kind is self.torch.Size:
            return (kind, *[self.key(part) for part in value])
        if isinstance(value, self.torch.Tensor):
            if (own := _of_this_rank(value)) is not value:
                return self.key(own)
            if not is_plain(kind):
                raise Inexpressible(f"a tensor of the class {kind.__name__}")
            self.plain.add(kind)
            return self.key(value)
        if kind is slice:
            return kind, self.key(value.start), self.key(value.stop), self.key(value.step)
        if isinstance(value, numbers.Number):
            return kind, repr(value)
        return (kind, value) if kind in self.values else (kind,)

    def _name(self, func: Any) -> str | None:
        """The name of a function that is met for the first time; None if it is no call that counts."""
        stem = getattr(func, "__name__", "")
        name = None
        if stem not in ("__get__", "__set__", "__delete__", *_NO_CALLS) and not stem.startswith(
            "_record_function"
        ):
            try:
                name = name_of(self.torch, func)
            except Inexpressible:
                plain = self.torch.overrides.resolve_name(func)
                computes = plain is not None and not plain.startswith("profiler.")
                name = f"?{plain}" if computes else None
        self.names[func] = name
        return name

    def first(self, name: str, func: Any, key: Any, args: Any, kwargs: dict[str, Any], frame: Any) -> Any:
        """A call that was not seen before. A function that is written in Python shows the calls inside; they
        count if they are several, or if the function itself is no case."""
        text, known = self._text(name, args, kwargs)
        inside: list[Any] = []

        def call() -> Any:
            if hasattr(func, "__code__"):
                return self._watched(func, args, kwargs, inside)
            return func(*args, **kwargs)

        taken = self._take_inputs(name, 1, args, kwargs)
        result, kernels = dispatched.kernels_of(self.torch, call, func)
        inside = [each for each in inside if each[2]]
        text, known = self._cast(text, known, func, args, kwargs, result)
        known |= {"device": self._device(args, kwargs), "kernels": kernels}
        case = self.known.new(key, text, known, name.lstrip("?"))
        self.recorder.count(case, frame)
        if self.summaries is not None:
            self._keep(name, case, result, taken)
        if not text and inside:
            case.reason = ""
        for key, inner, text, known in inside if len(inside) > 1 or case.number < 0 else ():
            each = self.known.cases.get(key) or self.known.new(key, text, known, inner.lstrip("?"))
            each.inside[case] = each.inside.get(case, 0) + 1
            self.recorder.within(each, name.lstrip("?"))
            self.recorder.place(each, frame)
        return result

    def _watched(self, func: Any, args: Any, kwargs: Any, inside: list[Any]) -> Any:
        """The result, with the calls that PyTorch's function makes inside. The function itself must not see
        the mode, or it would call it again."""
        own = func.__code__
        homes = func.__globals__, vars(self.torch.overrides)
        asks = [
            (home, name, each)
            for home in homes
            for name, each in home.items()
            if name.startswith("has_torch_function")
        ]

        def blind(plain: Callable[..., bool]) -> Callable[..., bool]:
            return lambda *values: sys._getframe(1).f_code is not own and plain(*values)

        if self.watched is not None:
            return func(*args, **kwargs)
        self.local.watched = inside
        for home, name, each in asks:
            home[name] = blind(each)
        try:
            with self:  # type: ignore[attr-defined]
                return func(*args, **kwargs)
        finally:
            for home, name, each in asks:
                home[name] = each
            self.local.watched = None

    @property
    def watched(self) -> list[Any] | None:
        """Where this thread's calls inside of a composite function go."""
        return getattr(self.local, "watched", None)

    def _text(self, name: str, args: Any, kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The case, and what it states differently: a share that is dropped is 0. No text and the reason, if
        there is no case."""
        args, kwargs, changed = list(args), dict(kwargs), {}
        for each in _DROPPING.keys() & kwargs.keys():
            changed[each] = kwargs[each]
            kwargs[each] = 0.0
        at = _POSITIONS.get(name, _WEIGHTS.get(name, len(args)))
        if at < len(args) and isinstance(args[at], float):
            changed["dropout"] = args[at]
            args[at] = 0.0
        try:
            if name.startswith("?"):
                raise Inexpressible("no function that a case may call")
            args, kwargs = mapped((args, kwargs), _of_this_rank)
            text = f"{name}({', '.join(argument_texts(self.torch, args, kwargs, {}))})"
        except Exception as error:
            return "", {"reason": _reason(error)}
        return text, {"changed": changed} if any(changed.values()) else {}

    def _cast(self, text: str, known: Any, func: Any, args: Any, kwargs: Any, result: Any) -> tuple[str, Any]:
        """The case of a call under autocast: in the dtype in which it has computed, unless zeros of the same
        dtypes give it without autocast, too."""
        dtype = self._dtype_of(result) if text and self.autocast() else ""
        if not dtype or {each[1] for each in _FLOATING.findall(text)} <= {dtype}:
            return text, known
        torch = self.torch

        def zeros(each: Any) -> Any:
            if not isinstance(each, torch.Tensor):
                return each
            device = "cpu" if each.numel() <= MOST_ZEROS else "meta"
            return torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=device).zero_()

        try:
            with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.random.fork_rng(devices=[]):
                args, kwargs = mapped((args, kwargs), zeros)
                if self._dtype_of(func(*args, **kwargs)) == dtype:
                    return text, known
        except Exception:  # a mix of dtypes that only autocast takes
            pass
        known = known | {"changed": known.get("changed", {}) | {"autocast": dtype}}
        return _FLOATING.sub(rf'\1"{dtype}"', text), known

    def _dtype_of(self, result: Any) -> str:
        """The dtype of the first floating-point tensor."""
        parts = result if isinstance(result, list | tuple) else (result,)
        found = [each.dtype for each in parts if isinstance(each, self.torch.Tensor)]
        return next((str(each).removeprefix("torch.") for each in found if each.is_floating_point), "")

    def _device(self, args: Any, kwargs: Any) -> str:
        for value in (*args, *kwargs.values()):
            for part in value if isinstance(value, list | tuple) else (value,):
                if isinstance(part, self.torch.Tensor):
                    return str(part.device)
        return str(kwargs.get("device") or "cpu")


def _of_this_rank(value: Any) -> Any:
    """Of a tensor that is spread over ranks (DTensor), what this rank has; any other value as it is."""
    return getattr(value, "_local_tensor", value)


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, Inexpressible) else f"raises {type(error).__name__}"


def start(torch: Any) -> None:
    """Captures all threads of this process from now on."""
    recorder = recorder_of("torch", torch)
    if recorder is None:
        return
    options = recorder.options
    torch.overrides.resolve_name(torch.abs)  # learns the names before the program replaces a function
    if options["summaries"]:
        recorder.summaries = Summaries(torch, recorder.found_nan)
    if options["level"] == "dispatch":
        mode: Any = dispatched.level(torch, _Mode)(torch, recorder)
    else:
        mode = type("Calls", (_Mode, torch.overrides.TorchFunctionMode), {})(torch, recorder)
    modes = [mode]
    if options["level"] != "dispatch" and not options["deep"]:  # whose own calls would be counted
        modes.append(dispatched.look_once(torch, mode, recorder))
    atexit.register(mode.stop)
    _follow_threads(mode)
    boundaries = Boundaries(torch, recorder, options["deep"]) if options["deep"] else None
    _follow_steps(torch, recorder, boundaries)
    _keep_fast_paths(torch)
    compiled.follow(torch, mode, modes)


def _follow_threads(mode: Any) -> None:
    """Modes belong to a thread: new ones get it, too."""
    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def with_mode(thread: threading.Thread) -> None:
        with mode:
            bootstrap(thread)

    threading.Thread._bootstrap_inner = with_mode  # type: ignore[attr-defined]


def _follow_steps(torch: Any, recorder: Recorder, boundaries: Boundaries | None) -> None:
    """A step ends when the program's leading optimizer steps: the first one, or another one that has stepped
    twice since."""
    lead: list[int] = []
    since: set[int] = set()

    def stepped(optimizer: Any, *_: Any) -> None:
        number = id(optimizer)
        if boundaries is not None:
            boundaries.gradients(optimizer)
            boundaries.end_step()
        if number in since or number in lead or not lead:
            lead[:] = [number]
            since.clear()
            recorder.begin_step(recorder.step + 1)
        else:
            since.add(number)

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(stepped)


def _keep_fast_paths(torch: Any) -> None:
    """Modules of PyTorch ask whether any argument overrides functions, and then avoid their fused kernels.
    The mode must not look like such an argument."""
    plain: Callable[..., bool] = torch.overrides.has_torch_function

    def has_torch_function(relevant: Any) -> bool:
        none = torch._C._disabled_torch_function_impl
        return plain(relevant) and any(
            getattr(type(each), "__torch_function__", none) not in (none, torch.Tensor.__torch_function__)
            for each in relevant
        )

    torch.overrides.has_torch_function = has_torch_function
