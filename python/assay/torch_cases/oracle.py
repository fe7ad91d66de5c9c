"""The reference of a torch case: the same call in float64, rounded to the dtypes that the call returns.

PyTorch's function runs twice in the reference lane: as it is, for structure and dtypes, and with every
floating-point tensor and dtype widened. Gradients flow through the wide call and are rounded at the end.
Where nothing can be widened (integers, float64), or float64 has no kernel, the call itself is the reference.

Where assay.torch_cases.independent_formulas has a formula of the function, it takes the place of the wide
call.
"""

from collections.abc import Callable
from typing import Any

from assay.rules import ask
from assay.wire import UNSUPPORTED, Stop

WIDER = {
    "float16": "float64", "bfloat16": "float64", "float32": "float64", "float8_e4m3fn": "float64",
    "float8_e5m2": "float64", "complex32": "complex128", "complex64": "complex128",
}  # fmt: skip
# Functions whose results say something about the dtype or the memory of their arguments.
_OF_DTYPE = frozenset(
    "is_floating_point is_complex is_signed element_size dtype type nextafter frexp finfo result_type "
    "can_cast nan_to_num nan_to_num_ nextafter_ promote_types stride is_contiguous storage_offset nbytes "
    "is_same_size view_as_real itemsize".split()
)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The arguments or results with each part that is no container changed."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(part, change) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(mapped(part, change) for part in value)
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    return change(value)


def copies_of(torch: Any, args: Any, kwargs: Any, wider: dict[Any, Any]) -> tuple[Any, Any, bool]:
    """The arguments with copies of the tensors, which the call may change, in wider dtypes; and whether any
    is wider. An argument that is passed twice stays one."""
    made: dict[int, Any] = {}
    widened = False

    def change(part: Any) -> Any:
        nonlocal widened
        if isinstance(part, torch.dtype):
            return wider.get(part, part)
        if not isinstance(part, torch.Tensor):
            return part
        if id(part) not in made:
            widened |= part.dtype in wider
            made[id(part)] = part.to(wider[part.dtype]) if part.dtype in wider else part.clone()
        return made[id(part)]

    args, kwargs = mapped((args, kwargs), change)
    return args, kwargs, widened


def tensors_of(value: Any) -> list[Any]:
    """A tensor, or a list of tensors, as a list."""
    return value if isinstance(value, list) else [value]


def changed_by(result: Any, args: Any) -> Any:
    """The result of a call, which is its first argument if it returns nothing."""
    return args[0] if result is None and args else result


class Drawn:
    """The reference of random draws: the distribution that the table states, unless the call raises."""

    def __init__(self, torch: Any, function: Callable[..., Any], distribution: Callable[..., Any]) -> None:
        self.torch = torch
        self.function = function
        self.distribution = distribution

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own, named, _ = copies_of(self.torch, args, kwargs, {})
        self.function(*own, **named)
        return self.distribution(*args, **kwargs)


class Oracle:
    """The reference function of one API."""

    def __init__(
        self, torch: Any, function: Callable[..., Any], stem: str, parameters: tuple[str, ...], updates: Any,
        formula: Callable[[dict[str, Any]], Any] | None = None, below: bool = False,
    ) -> None:  # fmt: skip
        self.below = below  # whether it is an operator below autograd
        self.formula = formula  # assay.torch_cases.independent_formulas
        self.updates = updates  # parameters that a call changes beside its result, or a function of the call
        self.torch = torch
        self.function = function
        self.stem = stem
        self.parameters = parameters
        self.widens = stem not in _OF_DTYPE
        self._wider = {
            getattr(torch, name): getattr(torch, wide) for name, wide in WIDER.items() if hasattr(torch, name)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(self.parameters, args, strict=False)) | kwargs
        if any(named.get(name) for name in ("dropout_p", "dropout")) and named.get("training", True):
            raise Stop(UNSUPPORTED, "assay has no distribution for results after dropout")
        if self.stem == "rms_norm" and named.get("eps") is None:  # the default depends on the dtype
            kwargs["eps"] = self.torch.finfo(args[0].dtype).eps
        *plain, _ = copies_of(self.torch, args, kwargs, {})
        *wide, is_wider = copies_of(self.torch, args, kwargs, self._wider)
        independent = self._by_formula(named, *wide)
        if independent is None and not (self.widens and is_wider):
            return self._updating(named, *plain)
        with self.torch.no_grad():
            found = changed_by(self._as_it_is(*plain), plain[0])
        if independent is not None and getattr(found, "shape", None) == independent.shape:
            return independent.to(found.dtype)
        try:
            result = self._updating(named, *wide)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            return self._updating(named, *copies_of(self.torch, args, kwargs, {})[:2])
        return self._rounded(result, found)

    def _as_it_is(self, args: Any, kwargs: Any) -> Any:
        """The call's result. Of an operator below autograd that this device lacks for a mix of dtypes, which
        another device has: its structure and dtypes, on tensors without memory."""
        try:
            return self.function(*args, **kwargs)
        except RuntimeError:
            if not self.below:
                raise
            tensor = self.torch.Tensor
            args, kwargs = mapped(
                (args, kwargs), lambda part: part.to("meta") if isinstance(part, tensor) else part
            )
            return self.function(*args, **kwargs)

    def _by_formula(self, named: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """The formula's result; None if there is none, or if the call changes more than its result.
        Some functions have gradients with out=, and others have none."""
        if self.formula is None or self._updated(named) or kwargs.get("out") is not None:
            return None
        try:
            return self.formula(dict(zip(self.parameters, args, strict=False)) | kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, LookupError):
            return None

    def _updating(self, named: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """The result of the function; what it updates gets its new values."""
        result = self.function(*args, **kwargs)
        copies = dict(zip(self.parameters, args, strict=False)) | kwargs
        with self.torch.no_grad():
            for name in self._updated(named):
                for old, new in zip(tensors_of(named[name]), tensors_of(copies[name]), strict=True):
                    old.copy_(new)
        return changed_by(result, args)

    def _updated(self, named: dict[str, Any]) -> list[str]:
        """The parameters that the call changes beside its result."""
        updates = ask(self.updates, named, None) if callable(self.updates) else self.updates
        return [name for name in updates or () if isinstance(named.get(name), self.torch.Tensor | list)]

    def _rounded(self, wide: Any, found: Any) -> Any:
        """The wide result in the structure and dtypes of the call's own result."""
        tensor = self.torch.Tensor
        if isinstance(wide, tensor) and isinstance(found, tensor):
            if wide.dtype == found.dtype or wide.shape != found.shape:
                return wide if wide.shape == found.shape else found
            return wide.to(found.dtype)
        if isinstance(wide, list | tuple) and isinstance(found, list | tuple) and len(wide) == len(found):
            return [self._rounded(*pair) for pair in zip(wide, found, strict=True)]
        if isinstance(wide, dict):
            return {name: self._rounded(each, found[name]) for name, each in wide.items()}
        if isinstance(wide, self.torch.dtype):
            return found
        return wide if type(wide) is type(found) else found
