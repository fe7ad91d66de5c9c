"""Which operators of PyTorch's dispatcher the cases of a run judge: `assay report --scorecard`.

A case is about the operator that it names, or that its function has the name of; PyTorch itself chooses the
overload. A case that passes is right for each operator that it calls, too (on tensors without memory).
"""

from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

from assay.scripts.source import Case
from assay.wire import Fields, Stop

WORDS = ("wrong", "right", "no kernel", "not judged")  # the first one of an operator's cases counts
_HOMES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def scorecard(request: Fields) -> dict[str, Any]:
    """{"operators": {"aten::add.Tensor": {"float32": "right"}}, "groups": {…}, "dtypes": {…}, …}, of the
    request's cases: [text, dtype, word] each."""
    import torch

    from assay import reference
    from assay.registry import load_all

    reference.torch = torch  # before the tables are made
    load_all()
    every = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for text, dtype, word in request.cases:
        about, used = _operators(torch, text)
        for name in (about | used if word == "right" else about) & every:
            seen[name][dtype].add(word)
    operators = {
        name: {dtype: min(words, key=WORDS.index) for dtype, words in sorted(dtypes.items())}
        for name, dtypes in sorted(seen.items())
    }
    dtypes: dict[str, Counter[str]] = defaultdict(Counter)
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for name in every:
        of = operators.get(name, {})
        for dtype, word in of.items():
            dtypes[dtype][word] += 1
        word = min(of.values(), key=WORDS.index) if of else "no case"
        groups[_group(name)][word] += 1
        total[word] += 1
    return {"operators": operators, "dtypes": dtypes, "groups": groups, "total": total}


def _group(name: str) -> str:
    """The family of an operator, as assay has it."""
    from assay.torch_cases.entries import entry_of

    stem, _, overload = name.removeprefix("aten::").partition(".")
    if "backward" in stem:
        return "backward"
    with suppress(Exception):
        entry = entry_of(f"torch.ops.aten.{stem}.{overload or 'default'}")
        return (entry.family if entry is not None else "") or "other"
    return "other"


def _operators(torch: Any, text: str) -> tuple[set[str], set[str]]:
    """The overloads that a case is about, and those that it calls."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from assay.torch_cases.names import function_of

    used: set[str] = set()

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            used.add(function.name())
            return function(*args, **(kwargs or {}))

    try:
        case = Case(text)
        function = function_of(torch, case.api)
        with torch.device("meta"):
            calls = case.values(
                torch, lambda spec: torch.empty(spec.shape, dtype=getattr(torch, spec.dtype)), "meta"
            )
    except (Exception, Stop):
        return set(), set()
    home, _, stem = case.api.rpartition(".")
    parts = case.api.split(".")
    if parts[:3] == ["torch", "ops", "aten"] and len(parts) == 5:
        about = {f"aten::{parts[3]}" + f".{parts[4]}" * (parts[4] != "default")}
    else:
        stem = parts[3] if parts[:3] == ["torch", "ops", "aten"] else _HOMES.get(home, "") + stem
        about = set()
        with suppress(Exception):
            args, kwargs = calls[-1]
            overload = torch._C._jit_resolve_packet(f"aten::{stem}", *args, **kwargs)
            about = {f"aten::{stem}" + f".{overload}" * (overload != "default")}
    with suppress(Exception), torch.device("meta"), Watch():
        for args, kwargs in calls:
            function = function(*args, **kwargs)
    return (about or used if len(used) == 1 else about), used
