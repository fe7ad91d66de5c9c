"""Copies of a tensor: another dtype, other values, detached, complex or real."""

from assay.apis.arithmetic import together
from assay.apis.shape import OF_MEMORY
from assay.arguments import as_dtype
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api, same
from assay.rules import integers, positive, uniform
from assay.shorthand import IN_PLACE, PUBLIC, spread
from assay.spec import COMPLEX, FLOATING


def _named(dtype):
    """The name of a dtype; "int" is int64, "uint16" Paddle's old name of bfloat16."""
    name = str(dtype).rsplit(".", 1)[-1]
    return {"int": "int64", "uint16": "bfloat16"}.get(name, name)


def castable(x, dtype):
    """Fractions of either sign for an integer dtype, zeros for bool, no negative values for unsigned
    dtypes."""
    if x.dtype not in FLOATING:
        return None
    target = _named(dtype)
    if target == "bool":
        return integers(-1, 2)
    return uniform(0, 9) if target.startswith("u") else uniform(-9, 9) if target.startswith("int") else None


# What integer dtypes hold; float32 has no number between.
_RANGES = {
    "int8": (-128, 128), "int16": (-(2**15), 2**15), "int32": (-(2**31), 2**31 - 256),
    "int64": (-(2**62), 2**62), "uint8": (0, 256), "uint32": (0, 2**32 - 512),
}  # fmt: skip


def _whole(dtype):
    return _RANGES.get(_named(dtype))


def in_range(this, dtype):
    """Under wide values: all that an integer dtype holds. A conversion of larger numbers is undefined."""
    return uniform(*_whole(dtype)) if this.dtype in FLOATING and _whole(dtype) else None


def _no_integer(dtype):
    return "the conversion of NaN and infinity to an integer is undefined" if _whole(dtype) else None


def beyond_float8(dtype):
    """Values too large for float8 saturate or become NaN, depending on the version of PyTorch."""
    return (
        "the documentation does not say whether float8 saturates or overflows to NaN"
        if "float8" in str(dtype)
        else None
    )


def _wide(x, dtype):
    complex_to_whole = x.dtype in COMPLEX and _whole(dtype)
    return beyond_float8(dtype) or (
        "the conversion of numbers out of range to an integer is undefined" if complex_to_whole else None
    )


BEYOND_RANGE = {
    "wide": _wide,
    "infinity": lambda dtype: beyond_float8(dtype) or _no_integer(dtype),
    "nan": _no_integer,
}


@api(
    *spread("cast", *PUBLIC, *IN_PLACE),
    x=castable,
    undefined=BEYOND_RANGE,
    regimes={"wide": {"x": in_range}},
)
def cast(x, dtype):
    return x.to(as_dtype(dtype))


@api(
    "paddle.Tensor.astype",
    rules={"self": lambda dtype, this: castable(this, dtype)},
    undefined={**BEYOND_RANGE, "wide": lambda self, dtype: _wide(self, dtype)},
    regimes={"wide": {"self": in_range}},
)
def astype(self, dtype):
    return self.to(as_dtype(dtype))


@api(
    "paddle.assign",
    known_deviation=follows(
        "a Python float becomes float64, and a number becomes a tensor of shape [1]",
        "paddle-assign-number",
    ),
)
def assign(x, output=None):
    """The result is `output` itself if given, so a gradient counts for `output` as well as for x."""
    if isinstance(x, torch.Tensor):
        counts = output is not None and output.requires_grad
        return x + (output - output.detach()) if counts else x.clone()
    if isinstance(x, list | tuple) and x and isinstance(x[0], torch.Tensor):
        return torch.stack(x).detach()
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    made = torch.tensor(x)
    made = torch.tensor(x, dtype=wide.get(made.dtype, made.dtype))
    return made if made.ndim else made.reshape(1)


def of_its_own(found, given):
    """The result, and whether it has memory of its own."""
    x = next(iter(given.values()))
    parts = found if isinstance(found, dict) else {"result": found}
    own = not x.numel() or parts["result"].data_ptr() != x.data_ptr()
    return parts | {"memory of its own": own}


@api(*spread("clone", *PUBLIC), shown=of_its_own)
def clone(x, name=None):
    return of_its_own(x.clone(), {"x": x})


@api("paddle.Tensor.cuda")
def cuda(self, device_id=None, blocking=True):
    """The same values on a GPU."""
    return self.clone()


@api("paddle.Tensor.pin_memory")
def pin_memory(self, blocking=True):
    """The same values in memory that a GPU reads directly."""
    return self.clone()


@api("paddle.Tensor.detach")
def detach(self):
    return self.detach()


@api(*spread("where", *PUBLIC), condition=integers(0, 2))
def where(condition, x=None, y=None, name=None, *, out=None):
    if x is None and y is None:
        return torch.nonzero(condition, as_tuple=True)
    if isinstance(x, torch.Tensor):
        together(x, y)
    return torch.where(condition, x, y)


same("abs, angle, name=None", "paddle.polar", abs=positive())
same("x, name=None", *spread("real imag", *PUBLIC))


@api(*spread("as_complex", *PUBLIC), undefined=OF_MEMORY)
def as_complex(x, name=None):
    return torch.complex(x[..., 0], x[..., 1])


@api(*spread("as_real", *PUBLIC))
def as_real(x, name=None):
    return torch.stack([x.real, x.imag], -1)
