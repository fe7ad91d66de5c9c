"""Looks at the kernel of `assay kernel` and its reference before the run, to refuse wrong input at once.

That happens in a child process, because they may change this one, or crash.
"""

import inspect
import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from assay import extensions
from assay.child import told_by_child
from assay.scripts.source import Case
from assay.wire import Fields

MOST_ELEMENTS = 1 << 22  # of the tensors of a case with a larger shape
_TENSOR = re.compile(r"Tensor\(\[[^\]]*\]")


def kernel(request: Fields) -> dict[str, Any]:
    """{"facts": what lanes have to know, "cases": more cases}, or {"error": …}."""
    import torch

    told = told_by_child(lambda tell: _look(request, torch, tell))
    return told[-1] if told else {"error": "the file of the kernel, or its reference, ends the process"}


class Misfit(Exception):
    """The request does not fit the functions."""


def _look(request: Fields, torch: Any, tell: Callable[[dict[str, Any]], None]) -> None:
    """Tells the answer before the kernel is called, and afterwards."""
    os.dup2(2, 1)  # what files print is no answer
    from assay.kernel import Unusable, load, rule_of
    from assay.torch_cases.kernel_checks import memory_of, tensors_of

    try:
        extensions.import_all()
        function = load(request.kernel)
        reference = load(request.reference) if request.reference else None
        calls = [text for text in request.cases if text.startswith("torch.kernel.")]
        cases = [Sample(text, torch, request.device) for text in calls]
        names = parameters_of(function) or (parameters_of(reference) if reference is not None else ())
        if not names:  # as functions of C++ have none
            names = tuple(f"arg{place}" for place in range(max(len(case.calls[-1][0]) for case in cases)))
        for rule in request.rules.values():
            rule_of(rule)
        if missing := {*request.changes, *request.rules} - set(names):
            raise Misfit(
                f"the kernel has no parameter {', '.join(sorted(missing))}; it has {', '.join(names)}"
            )
        facts: dict[str, Any] = {
            "names": names, "changes": request.changes, "rules": request.rules,
            "reference": reference is not None, "gradients": not request.changes, "view": False,
            "given": [[spec.shape for spec in case.tensors] for case in cases],
        }  # fmt: skip
        for case in cases if reference is not None else ():
            tensors = case.made()
            try:
                result = case.called(reference, tensors, request.reference)
            except Exception as error:
                if isinstance(error, Misfit):
                    raise
                why = f"the reference raises {type(error).__name__}: {error}; the case is {case.text}"
                raise Misfit(why) from error
            if not tensors_of(result) and not request.changes:
                raise Misfit(f"the reference returns no tensor but {type(result).__name__}")
            case.check_state(function, reference)
            facts["view"] |= not memory_of(tensors_of(result)).isdisjoint(memory_of(tensors.values()))
        more = [each for case in cases for each in case.larger(reference)] if request.shapes else []
        tell({"facts": facts, "cases": more})
        for case in cases:
            try:
                try:
                    result = case.called(function, case.made(facts["gradients"]), request.kernel)
                except RuntimeError:  # it may work in place, which leaves do not allow
                    result = case.called(function, case.made(), request.kernel)
            except Misfit:
                raise
            except Exception:  # the run shows it
                continue
            found = tensors_of(result)
            if not found and not request.changes:
                returned = "nothing" if result is None else f"no tensor but {type(result).__name__}"
                raise Misfit(f"the kernel returns {returned}: --changes=PARAMETER names what it changes")
            facts["gradients"] &= any(each.requires_grad for each in found)
        tell({"facts": facts, "cases": more})
    except (Unusable, Misfit, extensions.Missing) as error:
        tell({"error": str(error)})


def parameters_of(function: Any) -> tuple[str, ...]:
    """The parameters of a function, or of a module's call; empty if it does not tell them."""
    from assay.torch_cases.modules import names_of

    try:
        return names_of(function.forward if inspect.isclass(function) else function)
    except (ValueError, TypeError, AttributeError):
        return ()


class Sample(Case):
    """A case with random values."""

    def __init__(self, text: str, torch: Any, device: str) -> None:
        super().__init__(text)
        self.text, self.torch = text, torch
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def made(self, leaves: bool = False) -> dict[int, Any]:
        """Its tensors: fractions, zeros as integers."""
        torch = self.torch
        found = {}
        for spec in self.tensors:
            dtype = getattr(torch, spec.dtype)
            floating = dtype.is_floating_point or dtype.is_complex
            numbers = torch.rand(spec.shape) * 0.8 + 0.1 if floating else torch.zeros(spec.shape)
            found[spec.index] = numbers.to(dtype).to(self.device).requires_grad_(leaves and floating)
        return found

    def called(self, function: Any, tensors: dict[int, Any], name: str) -> Any:
        """The result. Raises Misfit if the arguments do not fit."""
        if inspect.isclass(function) != self.constructs:
            raise Misfit(
                f"{name} is a function: write its arguments in one pair of parentheses"
                if self.constructs
                else f"{name} is a class: write (ARGUMENTS OF THE CONSTRUCTOR)(INPUTS)"
            )
        for args, kwargs in self.values(self.torch, lambda spec: tensors[spec.index], self.device):
            check_signature(function, args, kwargs, name)
            function = function(*args, **kwargs)
            if isinstance(function, self.torch.nn.Module):
                function = function.to(self.device)
        return function

    def check_state(self, *classes: Any) -> None:
        """Raises Misfit if two modules have other parameters, which lanes fill in this order."""
        if not all(inspect.isclass(each) and issubclass(each, self.torch.nn.Module) for each in classes):
            return
        args, kwargs = self.values(self.torch, lambda spec: self.made()[spec.index], self.device)[0]
        try:
            modules = [each(*args, **kwargs) for each in classes]
        except Exception:  # the run shows it
            return
        kernel, reference = (
            [
                f"{name} {list(each.shape)}"
                for name, each in (*module.named_parameters(), *module.named_buffers())
            ]
            for module in modules
        )
        if kernel != reference:
            told = " and ".join(", ".join(each) or "none" for each in (kernel, reference))
            raise Misfit(f"the parameters and buffers of the kernel and of the reference differ: {told}")

    def larger(self, function: Any) -> list[str]:
        """Cases of other shapes that the function, if there is one, takes: each extent twice as large and
        odd, a batch of one, of none, and as long as a row."""
        extents = dict.fromkeys(extent for spec in self.tensors for extent in spec.shape if extent > 1)
        first = next((spec.shape for spec in self.tensors), ())
        found = []
        for extent in extents:
            for change in (2 * extent + 1, *((1, 0, first[-1]) if first[:1] == (extent,) else ())):
                swap = partial(re.sub, rf"(?<![\w.]){extent}(?![\w.])", str(change))
                in_tensors = _TENSOR.sub(lambda match, swap=swap: swap(match[0]), self.text)
                for text in (in_tensors, swap(self.text)):
                    case = Sample(text, self.torch, self.device)
                    if sum(spec.size for spec in case.tensors) > MOST_ELEMENTS:
                        continue
                    try:
                        if function is not None:
                            case.called(function, case.made(), "")
                    except Exception:
                        continue
                    found.append(text)
                    break
        return found


def check_signature(function: Any, args: Any, kwargs: Any, name: str) -> None:
    """Raises Misfit unless a function of Python takes these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except ValueError:  # it tells no signature
        return
    except TypeError as error:
        raise Misfit(
            f"{name}{inspect.signature(function)} does not take the arguments of the case: {error}"
        ) from error
