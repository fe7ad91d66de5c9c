"""Looks at the kernel of `assay kernel` and its reference before the run, to refuse wrong input at once.

The kernel is looked at in a child process, because it may change this one, or crash.
"""

import inspect
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from assay import extensions
from assay.child import told_by_child
from assay.spec import DtypeName, PlaceName, TensorSpec
from assay.wire import Fields

MOST_ELEMENTS = 1 << 22  # of the tensors of a case with a larger shape
_TENSOR = re.compile(r"Tensor\(\[[^\]]*\]")


def kernel(request: Fields) -> dict[str, Any]:
    """{"facts": what lanes have to know, "cases": more cases}, or {"error": …}."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what files print is no answer
    try:
        return _answer(request)
    finally:
        sys.stdout.flush()
        os.dup2(answers, 1)


def _answer(request: Fields) -> dict[str, Any]:
    import torch

    from assay.torch_cases.kernel_checks import tensors_of

    request.cases = [text for text in request.cases if text.startswith("torch.kernel.")]
    told = told_by_child(lambda tell: _look(request, torch, tell))
    seen = told[-1] if told else {"error": "the file of the kernel ends the process"}
    if "error" in seen:
        return seen
    seen |= {"changes": request.changes, "rules": request.rules, "view": False, "given": []}
    if missing := {*request.changes, *request.rules} - set(seen["names"]):
        names = ", ".join(seen["names"])
        return {"error": f"the kernel has no parameter {', '.join(sorted(missing))}; it has {names}"}
    device = request.device if request.device.startswith(("cpu", "cuda")) else ""
    cases = [Case(text, torch, device) for text in request.cases]
    seen["given"] = [case.shapes() for case in cases]
    seen["reference"] = bool(request.reference)
    function: Any = None
    if request.reference:
        from assay.kernel import Unusable, load

        try:
            function = load(request.reference)
            for case in cases:
                tensors = case.tensors()
                result = case.call(function, tensors, request.reference)
                memory = {each.untyped_storage().data_ptr() for each in tensors.values()}
                results = [each for each in tensors_of(result) if each.numel()]
                seen["view"] |= any(each.untyped_storage().data_ptr() in memory for each in results)
        except (Unusable, Misfit) as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"the reference raises {type(error).__name__}: {error}; the case is {case.text}"}
    more = [each for case in cases for each in case.larger(function)] if request.shapes else []
    return {"facts": seen, "cases": more}


class Misfit(Exception):
    """A case does not fit the signature of a function."""


class Case:
    """A case with random values."""

    def __init__(self, text: str, torch: Any, device: str) -> None:
        import assay_native as native

        self.text, self.torch = text, torch
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        _, args, kwargs, made = native.parse(text, TensorSpec, DtypeName, PlaceName)
        self.calls = ([made] if made else []) + [(args, kwargs)]

    def specs(self) -> dict[int, Any]:
        """The tensors by their number."""
        found: dict[int, Any] = {}

        def collect(value: Any) -> None:
            if isinstance(value, TensorSpec):
                found.setdefault(value.index, value)
            elif isinstance(value, list | tuple):
                for part in value:
                    collect(part)

        for args, kwargs in self.calls:
            collect([*args, *kwargs.values()])
        return found

    def shapes(self) -> list[list[int]]:
        """The shapes of the tensors in their order."""
        return [list(spec.shape) for _, spec in sorted(self.specs().items())]

    def tensors(self, leaves: bool = False) -> dict[int, Any]:
        """Tensors of the case: fractions, zeros as integers."""
        torch = self.torch
        found = {}
        for index, spec in self.specs().items():
            dtype = getattr(torch, spec.dtype)
            floating = dtype.is_floating_point or dtype.is_complex
            numbers = torch.rand(spec.shape) * 0.8 + 0.1 if floating else torch.zeros(spec.shape)
            found[index] = numbers.to(dtype).to(self.device).requires_grad_(leaves and floating)
        return found

    def call(self, function: Any, tensors: dict[int, Any], name: str) -> Any:
        """The result. Raises Misfit if the arguments do not fit."""

        def build(value: Any) -> Any:
            if isinstance(value, TensorSpec):
                return tensors[value.index]
            if isinstance(value, DtypeName):
                return getattr(self.torch, value)
            if isinstance(value, PlaceName):
                return self.device
            return type(value)(map(build, value)) if isinstance(value, list | tuple) else value

        if inspect.isclass(function) != (len(self.calls) == 2):
            raise Misfit(
                f"{name} is a class: write (ARGUMENTS OF THE CONSTRUCTOR)(INPUTS)"
                if inspect.isclass(function)
                else f"{name} is a function: write its arguments in one pair of parentheses"
            )
        for args, kwargs in self.calls:
            args, kwargs = [build(each) for each in args], {key: build(each) for key, each in kwargs.items()}
            check_signature(function, args, kwargs, name)
            function = function(*args, **kwargs)
            if isinstance(function, self.torch.nn.Module):
                function = function.to(self.device)
        return function

    def accepted_by(self, function: Any) -> bool:
        """Whether the function, if there is one, takes the arguments."""
        try:
            return function is None or self.call(function, self.tensors(), "") is not self
        except Exception:
            return False

    def larger(self, function: Any) -> list[str]:
        """Cases of other shapes that the function takes: each extent twice as large and odd, and a batch of
        one."""
        shapes = self.shapes()
        extents = dict.fromkeys(extent for shape in shapes for extent in shape if extent > 1)
        found = []
        for extent in extents:
            new = [2 * extent + 1] + [1] * (extent == (shapes[0] or [0])[0])
            for change in new:
                swap = partial(re.sub, rf"(?<![\w.]){extent}(?![\w.])", str(change))
                in_tensors = _TENSOR.sub(lambda match, swap=swap: swap(match[0]), self.text)
                for text in (in_tensors, swap(self.text)):
                    case = Case(text, self.torch, self.device)
                    size = sum(spec.size for spec in case.specs().values())
                    if size <= MOST_ELEMENTS and case.accepted_by(function):
                        found.append(text)
                        break
        return found


def check_signature(function: Any, args: Any, kwargs: Any, name: str) -> None:
    """Raises Misfit unless a function of Python takes these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Misfit(f"{name}{signature} does not take the arguments of the case: {error}") from error


def _look(request: Fields, torch: Any, tell: Callable[[dict[str, Any]], None]) -> None:
    """Tells what the kernel says of itself: before it is called, and afterwards."""
    from assay.kernel import Unusable, load, rule_of
    from assay.torch_cases.kernel_checks import tensors_of
    from assay.torch_cases.modules import names_of

    try:
        for module in (*extensions.named(extensions.MODULES), *extensions.named(extensions.IN_LANE)):
            extensions.import_module(module)
        function = load(request.kernel)
        names = names_of(function.forward if inspect.isclass(function) else function)
        for rule in request.rules.values():
            rule_of(rule)
        facts: dict[str, Any] = {"names": names, "gradients": not request.changes, "nothing": False}
        tell(facts)
        for case in [Case(text, torch, request.device) for text in request.cases]:
            try:
                try:
                    result = case.call(function, case.tensors(facts["gradients"]), request.kernel)
                except RuntimeError:  # it may work in place, which leaves do not allow
                    result = case.call(function, case.tensors(), request.kernel)
            except Misfit:
                raise
            except Exception:  # the run shows it
                continue
            found = tensors_of(result)
            if not found and not request.changes:
                raise Misfit("the kernel returns nothing: --changes=PARAMETER names what it changes")
            facts["nothing"] |= not found
            facts["gradients"] &= any(each.requires_grad for each in found)
        tell(facts)
    except (Unusable, Misfit, extensions.Missing) as error:
        tell({"error": str(error)})
