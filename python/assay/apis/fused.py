"""Fused layers of paddle.incubate: products with bias and activation, norms, feed-forward blocks."""

from assay import draw_distribution
from assay.apis.activation import peaked, swiglu
from assay.apis.dropout import dropout
from assay.arguments import widened
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import constant, integers, uniform
from assay.shorthand import COUNTS, INFERENCE_ONLY

# Activations by Paddle's name; the last two halve the last axis.
_ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: torch.relu(x),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "swiglu": lambda x: swiglu(x),
    "geglu": lambda x: torch.nn.functional.gelu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
}
NOT_BY_MASK = follows("no gradient with respect to the mask")
_COMPUTE = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def absent():
    """A missing output, for which Paddle returns a tensor without a shape."""
    return torch.empty(0)


def quantized(values):
    """Rounded products as int8. Half precision decides between neighbours by its last bit, and no comparison
    accepts "off by one", so only shape and dtype are compared."""
    return draw_distribution.anything(values.shape, torch.int8)


def _normalised(x, weight, bias, epsilon):
    """Layer norm over the last axis; the parameters may have a wider dtype than x."""
    width = (x.shape[-1],)
    weight, bias = (None if each is None else each.reshape(width).to(x.dtype) for each in (weight, bias))
    return torch.nn.functional.layer_norm(x, width, weight, bias, epsilon)


def _sum(first, *others):
    """The sum of the given terms, in at least float32."""
    total = widened(first)
    for other in others:
        total = total if other is None else total + widened(other)
    return total


def _product(x, y, bias, transpose_x, transpose_y):
    x = x.transpose(-1, -2) if transpose_x and x.ndim > 1 else x
    y = y.transpose(-1, -2) if transpose_y and y.ndim > 1 else y
    return _sum(widened(x) @ widened(y), bias)


@api("paddle.incubate.nn.functional.fused_matmul_bias")
def fused_matmul_bias(x, y, bias=None, transpose_x=False, transpose_y=False, name=None):
    return _product(x, y, bias, transpose_x, transpose_y).to(x.dtype)


@api("paddle.incubate.nn.functional.fused_linear")
def fused_linear(x, weight, bias=None, transpose_weight=False, name=None):
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


@api("paddle.incubate.nn.functional.fused_linear_activation")
def fused_linear_activation(x, y, bias, trans_x=False, trans_y=False, activation=None):
    return _ACTIVATIONS[activation or "none"](_product(x, y, bias, trans_x, trans_y)).to(x.dtype)


@api(
    "paddle.incubate.nn.functional.fused_bias_act",
    grad=INFERENCE_ONLY,
    x=lambda this: integers(-50, 50) if this.dtype == "int32" else None,
    dequant_scales=uniform(0.005, 0.02),
)
def fused_bias_act(
    x, bias=None, dequant_scales=None, shift=None, smooth=None, act_method="gelu", compute_dtype="default",
    quant_scale=-1, quant_round_type=0, quant_max_bound=0, quant_min_bound=0,
):  # fmt: skip
    """Dequantises, adds the bias, activates, shifts and smooths, and quantises."""
    dtype = getattr(torch, _COMPUTE[compute_dtype]) if x.dtype == torch.int32 else x.dtype
    result = widened(x) if dequant_scales is None else x * dequant_scales
    result = _ACTIVATIONS[act_method](_sum(result, bias))
    if shift is not None:
        result = _sum(result, shift) * smooth
    return quantized(result) if quant_scale > 0 else result.to(dtype)


@api(
    "paddle.incubate.nn.functional.fused_rms_norm",
    known_deviation=follows("`bias` is ignored when there is no residual", "paddle-fused-rms-norm-bias"),
)
def fused_rms_norm(
    x, norm_weight, norm_bias, epsilon, begin_norm_axis=1, bias=None, residual=None, quant_scale=-1,
    quant_round_type=0, quant_max_bound=0, quant_min_bound=0,
):  # fmt: skip
    """The norm of x + residual + bias. Their sum is the second result if there is a residual."""
    total = _sum(x, residual, bias if residual is not None else None)
    axes = list(range(begin_norm_axis % x.ndim, x.ndim))
    shape = x.shape[axes[0] :]
    scale = torch.rsqrt(total.square().mean(axes, keepdim=True) + epsilon)
    result = total * scale * norm_weight.reshape(shape)
    result = _sum(result, None if norm_bias is None else norm_bias.reshape(shape))
    result = quantized(result) if quant_scale > 0 else result.to(x.dtype)
    return result, absent() if residual is None else total.to(x.dtype)


@api(
    "paddle.incubate.nn.functional.fused_layer_norm",
    grad=INFERENCE_ONLY,
    known_deviation=follows(
        "returns four results; only the shapes of mean and variance are compared",
        "paddle-fused-layer-norm-results",
    ),
)
def fused_layer_norm(
    x, norm_weight, norm_bias, epsilon, residual_alpha=1.0, begin_norm_axis=1, bias=None, residual=None,
    quant_scale=-1, quant_round_type=0, quant_max_bound=0, quant_min_bound=0,
):  # fmt: skip
    """The norm of x + residual_alpha * residual + bias, or that sum if there is no scale and no bias.

    Beside the documented result Paddle returns the sum (unset without a residual, and if it is the result),
    and mean and variance for its own use; on the CPU the variance is an inverse root.
    """
    total = _sum(x, None if residual is None else widened(residual) * residual_alpha, bias)
    rows, plain = x.shape[:begin_norm_axis], norm_weight is None and norm_bias is None
    result = total
    if not plain:
        flat = _normalised(total.flatten(begin_norm_axis), norm_weight, norm_bias, epsilon)
        result = flat.reshape(x.shape)
    summed = draw_distribution.anything(x.shape, x.dtype) if residual is None or plain else total.to(x.dtype)
    statistics = draw_distribution.anything((rows.numel(),), torch.float32)
    return quantized(result) if quant_scale > 0 else result.to(x.dtype), summed, statistics, statistics


@api("paddle.incubate.nn.functional.fused_dropout_add")
def fused_dropout_add(x, y, p=0.5, training=True, mode="upscale_in_train", name=None):
    """A dropped element leaves y."""
    kept = dropout(x, p, training=training, mode=mode)
    if not isinstance(kept, draw_distribution.Distribution):
        return kept + y
    values, share, groups = kept.parameters
    return draw_distribution.either(values + y, y, share, groups)


def _draws(training, *rates):
    return training and any(0 < rate < 1 for rate in rates)


def fallen(x, rate, training, mode):
    """Dropout without a draw: in inference, or at a rate of 0 or 1."""
    return dropout(x, rate, training=training, mode=mode)


@api("paddle.incubate.nn.functional.fused_bias_dropout_residual_layer_norm")
def fused_bias_dropout_residual_layer_norm(
    x, residual, bias=None, ln_scale=None, ln_bias=None, dropout_rate=0.5, ln_epsilon=1e-5, training=True,
    mode="upscale_in_train", name=None,
):  # fmt: skip
    if _draws(training, dropout_rate):
        return draw_distribution.anything(x.shape, x.dtype)
    total = _sum(residual, fallen(_sum(x, bias), dropout_rate, training, mode))
    return _normalised(total, ln_scale, ln_bias, ln_epsilon).to(x.dtype)


@api("paddle.incubate.nn.functional.fused_feedforward")
def fused_feedforward(
    x, linear1_weight, linear2_weight, linear1_bias=None, linear2_bias=None, ln1_scale=None, ln1_bias=None,
    ln2_scale=None, ln2_bias=None, dropout1_rate=0.5, dropout2_rate=0.5, activation="relu", ln1_epsilon=1e-5,
    ln2_epsilon=1e-5, pre_layer_norm=False, training=True, mode="upscale_in_train", ring_id=-1,
    add_residual=True, name=None,
):  # fmt: skip
    if _draws(training, dropout1_rate, dropout2_rate):
        return draw_distribution.anything(x.shape, x.dtype)
    inner = widened(x)
    if pre_layer_norm:
        inner = _normalised(inner, ln1_scale, ln1_bias, ln1_epsilon)
    inner = _ACTIVATIONS[activation](_sum(inner @ widened(linear1_weight), linear1_bias))
    inner = fallen(inner, dropout1_rate, training, mode)
    outer = _sum(inner @ widened(linear2_weight), linear2_bias)
    outer = _sum(fallen(outer, dropout2_rate, training, mode), x if add_residual else None)
    if not pre_layer_norm:
        outer = _normalised(outer, ln2_scale, ln2_bias, ln2_epsilon)
    return outer.to(x.dtype)


@api("paddle.incubate.nn.functional.fused_multi_head_attention", known_deviation=NOT_BY_MASK)
def fused_multi_head_attention(
    x, qkv_weight, linear_weight, pre_layer_norm=False, pre_ln_scale=None, pre_ln_bias=None, ln_scale=None,
    ln_bias=None, pre_ln_epsilon=1e-5, qkv_bias=None, linear_bias=None, cache_kv=None, attn_mask=None,
    dropout_rate=0.5, attn_dropout_rate=0.5, ln_epsilon=1e-5, training=True, mode="upscale_in_train",
    ring_id=-1, add_residual=True, num_heads=-1, transpose_qkv_wb=False, name=None,
):  # fmt: skip
    """A cache is prepended to keys and values and returned, extended."""
    if not transpose_qkv_wb and qkv_weight.shape[0] != 3:
        raise ValueError(f"qkv_weight has the wrong shape {tuple(qkv_weight.shape)}")
    if _draws(training, dropout_rate, attn_dropout_rate):
        return draw_distribution.anything(x.shape, x.dtype)
    inner = widened(x)
    if pre_layer_norm:
        inner = _normalised(inner, pre_ln_scale, pre_ln_bias, pre_ln_epsilon)
    heads = num_heads if transpose_qkv_wb else qkv_weight.shape[1]
    weight = widened(qkv_weight) if transpose_qkv_wb else widened(qkv_weight).flatten(0, 2).T
    qkv = _sum(inner @ weight, None if qkv_bias is None else qkv_bias.flatten())
    query, key, value = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    if cache_kv is not None:
        key, value = torch.cat((widened(cache_kv), torch.stack((key, value))), 3)
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    scores = _sum(scores, None if attn_mask is None else attn_mask.detach())
    weights = fallen(torch.softmax(scores, -1), attn_dropout_rate, training, mode)
    outer = (weights @ value).transpose(1, 2).flatten(2) @ widened(linear_weight)
    outer = fallen(_sum(outer, linear_bias), dropout_rate, training, mode)
    outer = _sum(outer, x if add_residual else None)
    if not pre_layer_norm:
        outer = _normalised(outer, ln_scale, ln_bias, ln_epsilon)
    outer = outer.to(x.dtype)
    return outer if cache_kv is None else (outer, torch.stack((key, value)).to(x.dtype))


@api("paddle.incubate.softmax_mask_fuse", x=peaked, known_deviation=NOT_BY_MASK)
def softmax_mask_fuse(x, mask, name=None):
    return torch.softmax(_sum(x, mask.detach()), -1).to(x.dtype)


@api("paddle.incubate.softmax_mask_fuse_upper_triangle", x=peaked)
def softmax_mask_fuse_upper_triangle(x):
    hidden = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(widened(x).masked_fill(hidden, -torch.inf), -1).to(x.dtype)


@api(
    "paddle.incubate.nn.functional.blha_get_max_len",
    seq_lens_encoder=integers(0, 100),
    seq_lens_decoder=integers(0, 100),
    batch_size=constant(1),
    grad=COUNTS,
)
def blha_get_max_len(seq_lens_encoder, seq_lens_decoder, batch_size):
    return seq_lens_encoder.max().reshape(1), seq_lens_decoder.max().reshape(1)
