"""References of fused operators of PaddleFleet, which its training of large models records as cases.

The operators clip the halves of x, multiply SiLU of the first by the second, and scale each row.
"""

from assay.operators import CUSTOM
from assay.reference import torch
from assay.registry import REGISTRY, api
from assay.rules import positive, uniform

EXPLICIT = "callers use the derivative explicitly"
WIDE = uniform(-12, 12)  # beyond the usual limit of 10


def _clamped(x, limit):
    first, second = x.chunk(2, -1)
    return torch.nn.functional.silu(first.clamp(max=limit)) * second.clamp(-limit, limit)


def _rows(scale, x):
    return scale.to(x.dtype).reshape(*x.shape[:-1], 1)


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


@api(f"{CUSTOM}.fused_swiglu_scale_clamp", x=WIDE, scale=positive(0.1, 1), grad=EXPLICIT)
def fused_swiglu_scale_clamp(x, scale, clamp_value):
    wide = _wide(x)
    return (_clamped(wide, clamp_value) * _rows(scale, wide)).to(x.dtype)


@api(f"{CUSTOM}.fused_swiglu_scale_clamp_bwd", x=WIDE, scale=positive(0.1, 1), grad=EXPLICIT)
def fused_swiglu_scale_clamp_bwd(x, scale, dout, clamp_value):
    """The gradients of x and of the scale, which has one column."""
    wide = _wide(x).detach().requires_grad_()
    rows = _rows(scale, wide).detach().requires_grad_()
    with torch.enable_grad():
        found = torch.autograd.grad(_clamped(wide, clamp_value) * rows, (wide, rows), dout.to(wide.dtype))
    return found[0].to(x.dtype), found[1].to(scale.dtype)


@api(f"{CUSTOM}.paddlefleet_fused_swiglu_probs_bwd", unzipped_probs=positive(0.1, 1), grad=EXPLICIT)
def paddlefleet_fused_swiglu_probs_bwd(o1, do2_s, unzipped_probs, inplace):
    """The same as Paddle's fused_swiglu_weighted_bwd. In place, the results lie in o1 and do2_s."""
    return REGISTRY["paddle.incubate.nn.functional.fused_swiglu_weighted_bwd"].call(o1, do2_s, unzipped_probs)
