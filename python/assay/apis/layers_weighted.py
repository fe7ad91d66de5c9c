"""Layers with weights: linear, convolutions, norms, embedding, PReLU, losses."""

from dataclasses import replace
from math import prod

from assay.apis import convolution, normalization
from assay.apis.activation import prelu as prelu_function
from assay.apis.embedding import embedding as embedding_function
from assay.apis.products import bilinear as bilinear_function
from assay.apis.products import linear as linear_function
from assay.apis.sequence_loss import hsigmoid_loss
from assay.apis.windows import LAYOUTS, each
from assay.layers import Made, without
from assay.reference import torch
from assay.registry import layer
from assay.rules import integers, positive


@layer("paddle.nn.Linear", inputs="input", like="paddle.nn.functional.linear")
def linear(in_features, out_features, weight_attr=None, bias_attr=None, name=None):
    shapes = {"weight": (in_features, out_features), "bias": (out_features,)}
    shapes = without(shapes, weight=weight_attr, bias=bias_attr)
    return Made(lambda p, x: linear_function(x, p["weight"], p.get("bias")), shapes)


@layer("paddle.nn.Bilinear", inputs="x1 x2", like="paddle.nn.functional.bilinear")
def bilinear(in1_features, in2_features, out_features, weight_attr=None, bias_attr=None, name=None):
    shapes = {"weight": (out_features, in1_features, in2_features), "bias": (1, out_features)}
    shapes = without(shapes, weight=weight_attr, bias=bias_attr)
    return Made(lambda p, x1, x2: bilinear_function(x1, x2, p["weight"], p.get("bias")), shapes)


@layer("paddle.nn.Embedding", inputs="x", x=integers(0, lambda num_embeddings: num_embeddings))
def embedding(
    num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False, _weight=None, _freeze=False, device=None, dtype=None, weight_attr=None, name=None,
):  # fmt: skip
    def call(p, x):
        return embedding_function(
            x, p["weight"], padding_idx, max_norm, norm_type, scale_grad_by_freq=scale_grad_by_freq
        )

    return Made(call, {"weight": (num_embeddings, embedding_dim)})


@layer("paddle.nn.PReLU", inputs="x", like="paddle.nn.functional.prelu")
def prelu(num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW", name=None):
    return Made(lambda p, x: prelu_function(x, p["_weight"], data_format), {"_weight": (num_parameters,)})


# -- convolutions --

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def _convolution(rank, layout):
    @layer(f"paddle.nn.Conv{rank}D", f"paddle.nn.Conv{rank}d", inputs="x")
    def conv(
        in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None, weight_attr=None, bias_attr=None, data_format=layout,
    ):  # fmt: skip
        shapes = {"weight": (out_channels, in_channels // groups, *each(kernel_size, rank))}
        if bias is not False and bias_attr is not False:
            shapes["bias"] = (out_channels,)

        def call(p, x):
            around = padding
            if padding_mode != "zeros":
                sides = [side for amount in reversed(each(padding, rank)) for side in (amount, amount)]
                x = torch.nn.functional.pad(x, sides, _MODES[padding_mode])
                around = 0
            weights = p["weight"], p.get("bias")
            return convolution.convolved(x, *weights, stride, around, dilation, groups, data_format)

        return Made(call, shapes)


def _transposed(rank, layout):
    @layer(
        f"paddle.nn.Conv{rank}DTranspose",
        inputs="x output_size",
        signature=f"in_channels, out_channels, kernel_size, {convolution.transpose_options(rank == 1)}, "
        f"weight_attr=None, bias_attr=None, data_format='{layout}'",
    )
    def transpose(
        in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, dilation,
        weight_attr, bias_attr, data_format,
    ):  # fmt: skip
        kernel = (in_channels, out_channels // groups, *each(kernel_size, rank))
        shapes = {"weight": kernel, "bias": (out_channels,)}

        def call(p, x, output_size=None):
            beyond = output_padding if output_size is None else 0
            weights = p["weight"], p.get("bias")
            return convolution.transposed(
                x, *weights, stride, padding, beyond, groups, dilation, output_size, data_format
            )

        return Made(call, without(shapes, weight=weight_attr, bias=bias_attr))


for _rank, _layout in enumerate(LAYOUTS, 1):
    _convolution(_rank, _layout)
    _transposed(_rank, _layout)


# -- normalisations --


def _batch_norm(channels, momentum, epsilon, weight_attr, bias_attr, data_format, by_statistics):
    """Batch norm in training; the running statistics are updated."""
    shapes = without({"weight": (channels,), "bias": (channels,)}, weight=weight_attr, bias=bias_attr)
    shapes |= {"_mean": (channels,), "_variance": (channels,)}

    def call(p, x):
        state = {name: p[name].clone() for name in ("_mean", "_variance")}
        given = *state.values(), p.get("weight"), p.get("bias"), True, momentum
        options = {"epsilon": epsilon, "data_format": data_format, "use_global_stats": by_statistics}
        return normalization.batch_norm(x, *given, **options), state

    rules = {"_variance": positive(0.5, 1.5)}
    return Made(call, shapes, rules, state=("_mean", "_variance"))


for _rank, _layout in enumerate(LAYOUTS, 1):

    @layer(f"paddle.nn.BatchNorm{_rank}D", inputs="input")
    def batch_norm(
        num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format=_layout,
        use_global_stats=None, name=None,
    ):  # fmt: skip
        return _batch_norm(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats
        )

    @layer(f"paddle.nn.InstanceNorm{_rank}D", inputs="input")
    def instance_norm(
        num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None, data_format=_layout,
        name=None,
    ):  # fmt: skip
        shapes = {"scale": (num_features,), "bias": (num_features,)}

        def call(p, x):
            return normalization.instance_norm(
                x, weight=p.get("scale"), bias=p.get("bias"), eps=epsilon, data_format=data_format
            )

        return Made(call, without(shapes, scale=weight_attr, bias=bias_attr))


@layer("paddle.nn.BatchNorm", inputs="input")
def old_batch_norm(
    num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
    dtype="float32", data_layout="NCHW", in_place=False, moving_mean_name=None, moving_variance_name=None,
    do_model_average_for_mean_and_var=True, use_global_stats=False, trainable_statistics=False,
):  # fmt: skip
    made = _batch_norm(
        num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None
    )

    def call(p, x):
        y, state = made.call(p, x)
        return getattr(torch, act)(y) if act else y, state

    return replace(made, call=call)


@layer("paddle.nn.SyncBatchNorm", inputs="x")
def sync_batch_norm(
    num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW", name=None
):
    return _batch_norm(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None)


@layer("paddle.nn.LayerNorm", inputs="input")
def layer_norm(
    normalized_shape, epsilon=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None,
    weight_attr=None, bias_attr=None, name=None,
):  # fmt: skip
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    count = prod(shape)
    shapes = {"weight": (count,), "bias": (count,)} if elementwise_affine else {}
    shapes = without(shapes, weight=weight_attr, bias=False if bias is False else bias_attr)

    def call(p, x):
        return normalization.layer_norm(x, list(shape), p.get("weight"), p.get("bias"), epsilon)

    return Made(call, shapes)


@layer("paddle.nn.GroupNorm", inputs="input")
def group_norm(
    num_groups, num_channels, epsilon=1e-05, affine=True, device=None, dtype=None, weight_attr=None,
    bias_attr=None, data_format="NCHW", name=None,
):  # fmt: skip
    shapes = {"weight": (num_channels,), "bias": (num_channels,)} if affine else {}

    def call(p, x):
        return normalization.group_norm(x, num_groups, epsilon, p.get("weight"), p.get("bias"), data_format)

    return Made(call, without(shapes, weight=weight_attr, bias=bias_attr))


@layer("paddle.nn.SpectralNorm", inputs="x")
def spectral_norm(weight_shape, dim=0, power_iters=1, eps=1e-12, dtype="float32"):
    """The weight divided by its largest singular value, from power iteration."""
    height = weight_shape[dim]
    width = prod(weight_shape) // height

    def call(p, x):
        matrix = x.movedim(dim, 0).flatten(1)
        u, v = p["weight_u"], p["weight_v"]
        for _ in range(power_iters):
            v = torch.nn.functional.normalize(matrix.detach().T @ u, dim=0, eps=eps)
            u = torch.nn.functional.normalize(matrix.detach() @ v, dim=0, eps=eps)
        return x / (u @ matrix @ v)

    shapes = {"weight_u": (height,), "weight_v": (width,)}
    return Made(call, shapes, dtype=dtype, constants=("weight_u", "weight_v"))


# -- losses with weights --


@layer(
    "paddle.nn.HSigmoidLoss",
    inputs="input label path_table path_code",
    like="paddle.nn.functional.hsigmoid_loss",
    label=integers(0, lambda num_classes: num_classes),
    path_table=integers(0, lambda num_classes: num_classes),
    path_code=integers(0, 2),
)
def hsigmoid(
    feature_size, num_classes, weight_attr=None, bias_attr=None, is_custom=False, is_sparse=False, name=None
):
    rows = num_classes if is_custom else num_classes - 1
    shapes = without({"weight": (rows, feature_size), "bias": (rows, 1)}, bias=bias_attr)

    def call(p, input, label, path_table=None, path_code=None):
        return hsigmoid_loss(input, label, num_classes, p["weight"], p.get("bias"), path_table, path_code)

    return Made(call, shapes)
