"""Blocks of numbers as float8 with a scale for each block, alone and fused with other steps.

A block's scale is 448 / amax, the largest float8 over the largest magnitude, computed in float32; the stored
scale is its reciprocal. So quantised numbers times the stored scale are the numbers, to half a step of
float8. The kernels exist on GPUs only. The references follow the documentation and the operators' unit tests,
and are tested on a CPU: tests/real/kernel_checks.py.
"""

from assay.apis.activation import swiglu
from assay.apis.kernels import swiglu_grad
from assay.arguments import as_dtype
from assay.reference import torch
from assay.registry import api
from assay.rules import constant, positive, uniform
from assay.shorthand import OTHER_OPERATOR, QUANTIZED, cycled

FUSED = "paddle.incubate.nn.functional."
BLOCK = 128
LARGEST = 448.0  # of float8_e4m3fn
MOST_SCALE = 255 / 128 * 2.0**127  # where 448 / amax overflows


def scales_of(amax, power_of_two, epsilon=0.0):
    """The factor for blocks of these largest magnitudes, in float32: 1 for a block of zeros."""
    amax = amax.float().clamp(min=epsilon)
    scale = torch.where(amax == 0, 1.0, LARGEST / amax)
    scale = torch.where(torch.isinf(scale), 2.0**127 if power_of_two else MOST_SCALE, scale)
    return torch.exp2(torch.floor(torch.log2(scale))) if power_of_two else scale


def _tiles(x, rows, columns):
    """x as [block, row, block, column], padded with zeros; and its shape."""
    height, width = x.shape
    padded = torch.nn.functional.pad(x.float(), (0, -width % columns, 0, -height % rows))
    return padded.reshape(len(padded) // rows, rows, padded.shape[1] // columns, columns)


def quantised(x, rows=1, columns=BLOCK, power_of_two=False, epsilon=0.0):
    """A matrix in float8 and the reciprocal scale of each block of this size."""
    tiles = _tiles(x, rows, columns)
    scale = scales_of(tiles.abs().amax((1, 3)), power_of_two, epsilon)
    whole = (tiles * scale[:, None, :, None]).flatten(2).flatten(0, 1)[: x.shape[0], : x.shape[1]]
    return whole.to(torch.float8_e4m3fn), 1 / scale


def spread_out(scale, shape, rows=1, columns=BLOCK):
    """The scale of each element, from those of blocks."""
    whole = scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return whole[: shape[0], : shape[1]]


def _decoded(scale):
    """The factors in a scale: four exponents of two in each int32, lowest byte first."""
    if scale.dtype != torch.int32:
        return scale
    octets = torch.stack([(scale >> shift) & 255 for shift in (0, 8, 16, 24)], -1).flatten(-2)
    return torch.exp2(octets.double() - 127)


def _exponents(this):
    """Exponents from -1 to 2 for packed scales."""
    if this.dtype != "int32":
        return positive(0.01, 1)
    return cycled([0x7F7E8180, 0x7E7F8081], constant(0x7F7F7F7F))(this)


@api(
    f"{FUSED}fp8_quant_blockwise",
    grad=QUANTIZED,
    x=uniform(-3, 3),
    ignores={"using_ue8m0_scale": "the layout of packed scales is undocumented"},
)
def fp8_quant_blockwise(
    x, epsilon=0.0, input_transpose=False, output_scale_transpose=True, return_transpose_only=False,
    using_pow2_scale=True, using_ue8m0_scale=False, quant_method="1x128", output_type="e4m3", name=None,
):  # fmt: skip
    if quant_method not in ("1x128", "128x128") or output_type != "e4m3":
        raise ValueError(f"unsupported: {quant_method}, {output_type}")
    rows = 1 if quant_method == "1x128" else BLOCK

    def one(matrix):
        values, scale = quantised(matrix, rows, BLOCK, using_pow2_scale, epsilon)
        return values, scale.T if output_scale_transpose else scale

    if not input_transpose:
        return one(x)
    return one(x.T) if return_transpose_only else (*one(x), *one(x.T))


@api(f"{FUSED}fused_act_dequant", grad=QUANTIZED, x_scale=_exponents)
def fused_act_dequant(x, x_scale):
    return (x.double() * spread_out(_decoded(x_scale), x.shape)).to(torch.bfloat16)


@api(f"{FUSED}fused_stack_transpose_quant", grad=QUANTIZED, x=uniform(-3, 3))
def fused_stack_transpose_quant(x, transpose=True):
    """Blocks of 128 by 128 of the matrices below one another, each transposed before."""
    return quantised(torch.cat([each.T if transpose else each for each in x]), BLOCK)


def _split_columns(values, scale, tokens_per_expert):
    """The columns of each expert, and its rows of the scales, which are transposed."""
    counts = [int(count) for count in tokens_per_expert]
    blocks = [count // BLOCK for count in counts]
    return list(values.split(counts, 1)), list(scale.T.split(blocks))


@api(
    f"{FUSED}fused_transpose_split_quant",
    grad=QUANTIZED,
    x=uniform(-3, 3),
    ignores={"input_scales": "its meaning is undocumented"},
)
def fused_transpose_split_quant(x, input_scales, tokens_per_expert, pow_2_scales=False):
    if not x.numel():
        return [], []
    return _split_columns(*quantised(x.T, power_of_two=pow_2_scales), tokens_per_expert)


@api(f"{FUSED}fused_transpose_wlch_split_quant", grad=QUANTIZED, x=uniform(-3, 3))
def fused_transpose_wlch_split_quant(x, tokens_per_expert, pow_2_scales=False):
    """The four axes become one row for each of the last, of the others in the order 1, 0, 2."""
    rows = x.permute(3, 1, 0, 2).flatten(1)
    return _split_columns(*quantised(rows, power_of_two=pow_2_scales), tokens_per_expert)


@api(f"{FUSED}fused_weighted_swiglu_act_quant", grad=QUANTIZED, x=uniform(-3, 3), prob=positive(0.1, 1))
def fused_weighted_swiglu_act_quant(x, prob=None, using_pow2_scaling=False, name=None):
    rows = swiglu(x.float().flatten(0, -2))
    rows = rows if prob is None else rows * prob.reshape(-1, 1)
    return quantised(rows, power_of_two=using_pow2_scaling)


@api(f"{FUSED}fused_swiglu_weighted_bwd", grad=OTHER_OPERATOR, unzipped_probs=positive(0.1, 1))
def fused_swiglu_weighted_bwd(o1, do2_s, unzipped_probs, name=None):
    """The gradients of swiglu(o1) * probability, and that product."""
    wide = torch.promote_types(o1.dtype, torch.float32)
    result, upstream = swiglu(o1.to(wide)), do2_s.to(wide)
    prob = unzipped_probs.to(wide).reshape(*o1.shape[:-1], 1)
    gradient = swiglu_grad(o1.to(wide), None, upstream * prob)[0]
    of_prob = (result * upstream).sum(-1).reshape(unzipped_probs.shape)
    return gradient.to(o1.dtype), of_prob.to(unzipped_probs.dtype), (result * prob).to(o1.dtype)


_SCALE = positive(0.01, 0.1)


@api(
    f"{FUSED}fp8_gemm_blockwise",
    grad=QUANTIZED,
    a_decode_scale=_SCALE,
    b_decode_scale=_SCALE,
    ignores={"use_split_accumulator": "it sums exactly"},
)
def fp8_gemm_blockwise(
    a, a_decode_scale, b, b_decode_scale, out_dtype, out=None, bias=None, accumulate=False,
    use_split_accumulator=True, is_a_1d_scaled=True, is_b_1d_scaled=True,
):  # fmt: skip
    """The product of a and the transpose of b. Scales of single rows are stored transposed."""
    if bias is not None:
        raise ValueError("bias is not supported")

    def whole(matrix, scale, single_rows):
        scale = scale.T if single_rows else scale
        return matrix.double() * spread_out(scale, matrix.shape, 1 if single_rows else BLOCK)

    product = whole(a, a_decode_scale, is_a_1d_scaled) @ whole(b, b_decode_scale, is_b_1d_scaled).T
    product = product + out.double() if accumulate and out is not None else product
    return product.to(as_dtype(out_dtype) if out is None else out.dtype)


@api("paddle.linalg.fp8_fp8_half_gemm_fused", grad=QUANTIZED)
def fp8_fp8_half_gemm_fused(
    x, y, transpose_x=False, transpose_y=False, bias=None, scale=1.0, output_dtype="float16", act="identity",
    name=None,
):  # fmt: skip
    x, y = x.double(), y.double()
    product = (x.mT if transpose_x else x) @ (y.mT if transpose_y else y) * scale
    product = product if bias is None else product + bias
    found = {"identity": lambda x: x, "relu": torch.relu, "gelu": torch.nn.functional.gelu}[act](product)
    return found.to(as_dtype(output_dtype))
