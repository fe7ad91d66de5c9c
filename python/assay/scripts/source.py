"""Python source of values, calls and tensors, as Paddle and PyTorch write them."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import assay_native as native

from assay.registry import changes_input
from assay.spec import DtypeName, PlaceName, TensorSpec
from assay.wire import DIFFERENTIABLE, Fields


@dataclass(frozen=True)
class Language:
    """How a framework is written in Python."""

    module: str
    full_name: str
    gradients: str  # the function that differentiates
    leaf: str  # behind a tensor: makes it a leaf
    copy: str  # the function that copies a leaf within the graph
    seed: str  # the function that seeds its random generators
    differentiates: str  # whether a tensor can be differentiated
    tensor: str
    dtype: str  # as an argument
    cast: str  # behind a tensor
    read: str  # a tensor of the bytes `data`
    wide: str  # the tensor `x` in float64
    wide_layer: str  # a copy of `layer` in float64

    def made(self, dtype: str, shape: Iterable[int], numbers: list[str]) -> str:
        """A tensor of these literals, in row-major order."""
        if not numbers:
            return f"{self.module}.empty({list(shape)}, {self.dtype.format(dtype)})"
        # Neither framework makes float8 of numbers.
        small = dtype.startswith("float8")
        numbers_of = self.dtype.format("float32" if small else dtype)
        made = f"{self.tensor}({_nested(iter(numbers), list(shape))}, {numbers_of})"
        return made + self.cast.format(dtype) if small else made

    def on_device(self, device: str) -> list[str]:
        """The line, if any, that makes the device ("cpu", "gpu:0") the place of new tensors."""
        on_cpu = not device or device.startswith("cpu")
        if self.module == "paddle":
            return [f'paddle.set_device("{"cpu" if on_cpu else "gpu"}")']
        return [] if on_cpu else ['torch.set_default_device("cuda")']


LANGUAGES = {
    language.module: language
    for language in (
        Language(
            "paddle", "PaddlePaddle", "paddle.grad", ".stop_gradient = False", "paddle.assign",
            "paddle.seed", "not {}.stop_gradient", "paddle.to_tensor", '"{}"', '.astype("{}")',
            "paddle.to_tensor(memoryview(data))",
            'paddle.to_tensor(x, "float64", stop_gradient=x.stop_gradient)',
            'copy.deepcopy(layer).to(dtype="float64")',
        ),
        Language(
            "torch", "PyTorch", "torch.autograd.grad", ".requires_grad_()", "torch.clone",
            "torch.manual_seed", "{}.requires_grad", "torch.tensor", "dtype=torch.{}", ".to(torch.{})",
            "torch.frombuffer(data, dtype=torch.uint8)",
            "x.detach().double().requires_grad_(x.requires_grad)", "copy.deepcopy(layer).double()",
        ),
    )
}  # fmt: skip


def _nested(numbers: Iterator[str], shape: list[int]) -> str:
    if not shape:
        return next(numbers)
    return f"[{', '.join(_nested(numbers, shape[1:]) for _ in range(shape[0]))}]"


def literal(value: Any, named: Callable[[Any], str | None]) -> str | None:
    """The value as Python, None if there is no such text. `named` is the text of what is no plain value."""
    if (text := named(value)) is not None:
        return text
    if isinstance(value, list | tuple | slice):
        parts = (value.start, value.stop, value.step) if isinstance(value, slice) else value
        texts = [literal(part, named) for part in parts]
        if None in texts:
            return None
        inside = ", ".join(map(str, texts))
        if isinstance(value, tuple):
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        return f"[{inside}]" if isinstance(value, list) else f"slice({inside})"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value) if isfinite(value) else f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({literal(value.real, named)}, {literal(value.imag, named)})"
    if value is Ellipsis:
        return "..."
    return repr(value) if value is None or isinstance(value, int) else None


class Case:
    """A case of a corpus, read as lanes read it. Its tensors are called x0, x1, …."""

    def __init__(self, text: str) -> None:
        self.api, args, kwargs, made = native.parse(text, TensorSpec, DtypeName, PlaceName)
        self.module = self.api.partition(".")[0]
        self.constructs = made is not None
        self.in_place = changes_input(self.api)
        # A function of `assay kernel` is called by its own name.
        self.function = self.api.removeprefix("torch.kernel.")
        self.calls = ([made] if made else []) + [(args, kwargs)]
        arguments = [value for args, kwargs in self.calls for value in (*args, *kwargs.values())]
        specs = {spec.index: spec for spec in _specs(arguments)}
        self.tensors = [specs[index] for index in sorted(specs)]
        self.changed = [value.index for value in arguments if isinstance(value, TensorSpec)][:1]

    def call(self, function: str = "", module: str = "", calls: list[Any] | None = None) -> str:
        """The call, or that of another function in the framework with this module."""
        module = module or self.module

        def named(value: Any) -> str | None:
            if isinstance(value, TensorSpec):
                return f"x{value.index}"
            return f"{module}.{value}" if isinstance(value, DtypeName) else None

        def argument(name: str, value: Any) -> str:
            if name in ("memory_format", "layout") and isinstance(value, str):
                return f"{name}={module}.{value}"
            return f"{name}={literal(value, named)}"

        for args, kwargs in self.calls if calls is None else calls:
            given = [str(literal(value, named)) for value in args]
            given += [argument(name, value) for name, value in kwargs.items()]
            function = f"{function or self.function}({', '.join(given)})"
        return function

    def values(self, torch: Any, tensors: Callable[[TensorSpec], Any], device: str) -> list[Any]:
        """Positional and named arguments of each call, as values of PyTorch."""

        def value_of(part: Any) -> Any:
            if isinstance(part, TensorSpec):
                return tensors(part)
            if isinstance(part, DtypeName):
                return getattr(torch, part)
            if isinstance(part, PlaceName):
                return device
            return type(part)(map(value_of, part)) if isinstance(part, list | tuple) else part

        return [
            (value_of(list(args)), {name: value_of(each) for name, each in kwargs.items()})
            for args, kwargs in self.calls
        ]

    def lines_of_layer(self) -> list[str]:
        """The layer's construction, and the call of `layer`."""
        made, calls = self.call(calls=self.calls[:1]), self.calls[1:]
        return [made, f"result = {self.call('layer', calls=calls)}"]

    def lines(self) -> list[str]:
        """The call and its result, which is the first tensor if the call works in place."""
        if self.in_place and self.changed:
            return [self.call(), f"result = x{self.changed[0]}  # changed in place"]
        return [f"result = {self.call()}"]

    def leaves(self) -> list[str]:
        """The tensors that have gradients."""
        return [f"x{spec.index}" for spec in self.tensors if spec.dtype in DIFFERENTIABLE]

    def copies(self, words: Language) -> list[str]:
        """The line, if any, that replaces leaves that the call would change, by copies."""
        if not (self.in_place and (leaves := self.leaves())):
            return []
        names = ", ".join(leaves) + ("," if len(leaves) == 1 else "")
        return [f"{names} = map({words.copy}, leaves)  # a leaf may not be changed in place"]


def _specs(value: Any) -> Iterator[TensorSpec]:
    if isinstance(value, TensorSpec):  # a tuple too
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _specs(part)
    elif isinstance(value, slice):
        yield from _specs((value.start, value.stop, value.step))


class Lane:
    """A lane of a run, as the run's properties describe it."""

    def __init__(self, facts: Fields) -> None:
        def text(name: str) -> str:
            return one_line(facts.properties.get(f"{facts.role}.{name}", ""))

        self.framework, self.label, self.device = text("framework"), text("lane"), text("device")
        self.execution, self.environment = text("execution"), text("environment")
        self.tables = text("functions") == "tables"  # it calls the reference functions of assay's tables
        self.build = one_line(facts.build)
        # The lines that import the function of `assay kernel`.
        file, _, kernel = one_line(facts.properties.get("flag.kernel", "")).rpartition(":")
        folder, _, stem = file.removesuffix(".py").rpartition("/")
        self.kernel: list[str] = []
        if stem.isidentifier() and kernel.isidentifier():
            self.kernel = [f"sys.path.append({folder or '.'!r})", f"from {stem} import {kernel}"]
        # That it imports after its framework. Scripts import names alone, whatever a run's database holds.
        self.modules = [name for name in text("modules").split(":") if name.replace(".", "_").isidentifier()]


def one_line(text: str) -> str:
    """The text without line breaks, which would end a comment of a script."""
    return " ".join(text.split())
