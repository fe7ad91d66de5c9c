"""A module for a test lane: replaces one function of PyTorch by a wrong one, as $FAULT says.

FAULT is KIND:NAME. NAME is a public function, which Python calls, or aten.OPERATOR.OVERLOAD, whose kernel for
the CPU is replaced by its decomposition, made wrong.
"""

import os

import torch
from torch._decomp import get_decompositions


def each(result, change):
    """The floating-point tensors of a result, changed."""
    if isinstance(result, torch.Tensor):
        return change(result) if result.is_floating_point() else result
    if isinstance(result, tuple):
        return tuple(each(part, change) for part in result)
    return result


def last_element(y):
    flat = y.reshape(-1)
    factors = torch.ones_like(flat)
    factors[-1:] = 1.1
    return (flat * factors).reshape(y.shape)


CHANGES = {
    "scaled": lambda y: y * 1.01,
    "inexact": lambda y: y * (1 + 2**-20),  # within the error bar of a sum
    "half": lambda y: y.to(torch.bfloat16).to(y.dtype),
    "last": last_element,
    "large": lambda y: torch.where(y > 5e34, y * 1.05, y),
    "autocast": lambda y: y * 1.25 if torch.is_autocast_enabled("cpu") else y,
    "gradient": lambda y: y.detach() + (y - y.detach()) * 1.05,
}


def wrong(right, change):
    return lambda *args, **kwargs: each(right(*args, **kwargs), change)


def plant(kind, name):
    if name.startswith("aten."):
        operator, overload = name.split(".")[1:]
        packet = getattr(getattr(torch.ops.aten, operator), overload)
        kernel = wrong(get_decompositions([packet])[packet], CHANGES[kind])
        library = torch.library.Library("aten", "IMPL")
        library.impl(operator + ("" if overload == "default" else f".{overload}"), kernel, "CPU")
        return library
    home, _, stem = name.rpartition(".")
    owner = torch
    for part in home.split(".")[1:]:
        owner = getattr(owner, part)
    setattr(owner, stem, wrong(getattr(owner, stem), CHANGES[kind]))
    return None


kept = plant(*os.environ["FAULT"].split(":")) if os.environ.get("FAULT") else None
