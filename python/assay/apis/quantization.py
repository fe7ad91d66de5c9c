"""Weights as integers of 8 or 4 bits."""

from assay import draw_distribution
from assay.known_deviation import avoids, follows
from assay.reference import torch
from assay.registry import api
from assay.rules import constant, positive
from assay.shorthand import COUNTS

_ARCHITECTURES = (70, 75, 80, 86, 89, 90, 92, 100)


def _check_architecture(arch):
    """Raises ValueError for an unknown architecture, or if none is given and there is no GPU."""
    if arch is None and not torch.cuda.is_available() or arch is not None and arch not in _ARCHITECTURES:
        raise ValueError(f"unknown architecture {arch}")


@api(
    "paddle.nn.quant.weight_quantize",
    equal=("sorted", "value"),
    grad=COUNTS,
    known_deviation=follows("the scale has the dtype of x"),
)
def weight_quantize(x, algo="weight_only_int8", arch=None, group_size=-1):
    """The order of weights depends on the device's kernels. For bytes only the set of values is compared, for
    half bytes only the shape. Kernels take unsigned bytes, offset by 128."""
    rows, columns = x.shape
    bits = 4 if algo.endswith("int4") else 8
    largest = 127 if bits == 8 else 7
    scale_dtype = torch.float32 if algo == "llm.int8" else x.dtype
    if not x.numel():
        nothing = x.new_empty(columns * bits // 8, rows, dtype=torch.int8)
        return nothing, draw_distribution.anything((columns,), scale_dtype)
    _check_architecture(arch)
    groups = x.detach().float().reshape(-1, rows if group_size == -1 else group_size, columns)
    scale = (groups.abs().amax(1) / largest).to(scale_dtype)
    if bits == 4:
        return draw_distribution.anything(
            (columns // 2, rows), torch.int8
        ), scale if group_size != -1 else scale[0]
    ratio = groups / scale.float()[:, None]
    whole = torch.trunc(ratio + torch.sign(ratio) / 2).clamp(-largest, largest).reshape(rows, columns)
    whole = whole if algo == "llm.int8" else (whole + 128 + 128) % 256 - 128
    return whole.T.to(torch.int8), scale if group_size != -1 else scale[0]


@api(
    "paddle.nn.quant.weight_only_linear",
    weight=constant(-103),
    weight_scale=positive(0.001, 0.01),
    known_deviation=(
        avoids("all weights are equal; the order of the weights depends on the device's kernels"),
        follows("only x has a gradient"),
    ),
)
def weight_only_linear(
    x, weight, bias=None, weight_scale=None, weight_dtype="int8", arch=None, group_size=-1
):
    """All weights are the byte 153: 153 - 128, or twice 9 - 8."""
    _check_architecture(arch)
    value, columns = (25, len(weight)) if weight_dtype == "int8" else (1, 2 * len(weight))
    if x.shape[-1] != weight.shape[1] or weight_scale.shape[-1] != columns:
        raise ValueError(
            f"shapes do not match: {tuple(x.shape)}, {tuple(weight.shape)}, {tuple(weight_scale.shape)}"
        )
    scale = weight_scale.detach().float().reshape(-1, columns)
    scale = scale.repeat_interleave(x.shape[-1] // len(scale), 0)
    result = x.float() @ (scale * value)
    return (result if bias is None else result + bias.detach()).to(x.dtype)
