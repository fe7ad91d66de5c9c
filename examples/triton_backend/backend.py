"""A back end that replaces two CUDA kernels of PyTorch by Triton kernels.

`modules_in_lane` of assay.toml imports this file. BACKEND_FAULT=1 makes softmax round to half precision.
"""

import os

import torch
import triton
import triton.language as tl

WIDEST = 4096
FAULT = os.environ.get("BACKEND_FAULT") == "1"


@triton.jit
def silu_kernel(x, y, count, BLOCK: tl.constexpr, REAL: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count).to(REAL)
    tl.store(y + place, value / (1 + tl.exp(-value)), mask=place < count)


@triton.jit
def softmax_kernel(x, y, width, BLOCK: tl.constexpr, REAL: tl.constexpr, HALF: tl.constexpr):
    place = tl.arange(0, BLOCK)
    row = tl.program_id(0) * width
    value = tl.load(x + row + place, mask=place < width, other=-float("inf")).to(REAL)
    value = tl.exp(value - tl.max(value, 0))
    if HALF:
        value = value.to(tl.float16).to(REAL)
    tl.store(y + row + place, value / tl.sum(value, 0), mask=place < width)


def real_of(x):
    """In what the kernels compute."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32


def silu(x):
    """Replaces aten::silu."""
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        silu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, REAL=real_of(x))
    return y


def softmax(x, dim, half_to_float):
    """Replaces aten::_softmax."""
    rows = x.movedim(dim, -1).contiguous() if x.dim() else x.reshape(1)
    width = rows.shape[-1]
    if width > WIDEST:
        raise NotImplementedError(f"this back end has no softmax over {width} elements")
    y = torch.empty_like(rows)
    if rows.numel():
        block = triton.next_power_of_2(width)
        softmax_kernel[(rows.numel() // width,)](rows, y, width, BLOCK=block, REAL=real_of(x), HALF=FAULT)
    return y.movedim(-1, dim) if x.dim() else y.reshape(())


library = torch.library.Library("aten", "IMPL")
library.impl("silu", silu, "CUDA")
library.impl("_softmax", softmax, "CUDA")
