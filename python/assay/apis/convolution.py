"""Convolutions and transposed convolutions."""

from assay.apis.windows import LAYOUTS, channels_back, channels_second, each, padded, paddings
from assay.arguments import in_float32
from assay.reference import torch
from assay.registry import api


def extents(kernel, dilation):
    """The extent of a dilated kernel in each dimension."""
    return [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]


def nothing(x, weight, channels, sizes):
    """The result for an empty input or kernel, which PyTorch rejects."""
    y = x.new_zeros(x.shape[0], channels, *sizes)
    return y + 0 * (x.sum() + weight.sum())


def with_bias(y, bias, data_format):
    y = y if bias is None else y + bias.reshape(-1, *[1] * (y.ndim - 2))
    return channels_back(y, data_format)


def on_a_cpu(convolve):
    """The convolution; in float32 for half precision on a CPU, whose own kernels take minutes."""

    def run(x, weight, *others):
        if x.is_cuda:
            return convolve(x, weight, *others)
        return in_float32(lambda x, weight: convolve(x, weight, *others), x, weight)

    return run


def convolved(x, weight, bias, stride, padding, dilation, groups, data_format):
    x = channels_second(x, data_format)
    count = x.ndim - 2
    stride, dilation = each(stride, count), each(dilation, count)
    pairs = paddings(padding, x.shape[2:], weight.shape[2:], stride, data_format)
    convolve = on_a_cpu((torch.conv1d, torch.conv2d, torch.conv3d)[count - 1])
    if not x.numel() or not weight.numel():
        if x.shape[1] != weight.shape[1] * groups:
            raise ValueError(f"{x.shape[1]} channels do not match a kernel of shape {tuple(weight.shape)}")
        spans = zip(x.shape[2:], pairs, extents(weight.shape[2:], dilation), stride, strict=True)
        sizes = [max(0, (n + before + after - extent) // s + 1) for n, (before, after), extent, s in spans]
        y = nothing(x, weight, weight.shape[0], sizes)
    elif all(before == after for before, after in pairs):
        y = convolve(x, weight, None, stride, [before for before, _ in pairs], dilation, groups)
    else:
        y = convolve(padded(x, pairs), weight, None, stride, 0, dilation, groups)
    return with_bias(y, bias, data_format)


def _convolution(rank, layout):
    @api(f"paddle.nn.functional.conv{rank}d", cost="convolution")
    def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format=layout, name=None):
        return convolved(x, weight, bias, stride, padding, dilation, groups, data_format)


def transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, output_size, data_format):
    """The full transposed convolution, cropped by the padding. Requested elements beyond its end are zero."""
    x = channels_second(x, data_format)
    count = x.ndim - 2
    stride, dilation = each(stride, count), each(dilation, count)
    pairs = paddings(padding, x.shape[2:], weight.shape[2:], stride, data_format)
    transpose = on_a_cpu((torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[count - 1])
    spans = zip(x.shape[2:], pairs, extents(weight.shape[2:], dilation), stride, strict=True)
    natural = [(n - 1) * s + extent - before - after for n, (before, after), extent, s in spans]
    beyond = each(output_padding, count)
    if output_size is not None:
        beyond = [size - n for size, n in zip(each(output_size, count), natural, strict=True)]
        if any(not 0 <= more < max(1, step) for more, step in zip(beyond, stride, strict=True)):
            raise ValueError(f"output_size {output_size} does not fit {natural} and stride {stride}")
    if not x.numel() or not weight.numel():
        if x.shape[1] != weight.shape[0] or x.shape[1] % groups:
            raise ValueError(f"{x.shape[1]} channels do not match a kernel of shape {tuple(weight.shape)}")
        sizes = [n + more for n, more in zip(natural, beyond, strict=True)]
        return with_bias(nothing(x, weight, weight.shape[1] * groups, sizes), bias, data_format)
    y = transpose(x, weight, None, stride, 0, 0, groups, dilation)
    y = padded(y, [(-before, more - after) for (before, after), more in zip(pairs, beyond, strict=True)])
    return with_bias(y, bias, data_format)


def transpose_options(groups_first):
    """The shared part of the signatures of transposed convolutions and their layers."""
    order = "groups=1, dilation=1" if groups_first else "dilation=1, groups=1"
    return f"stride=1, padding=0, output_padding=0, {order}"


for _rank, _layout in enumerate(LAYOUTS, 1):
    _convolution(_rank, _layout)
    api(
        f"paddle.nn.functional.conv{_rank}d_transpose",
        cost="convolution",
        signature=f"x, weight, bias=None, {transpose_options(_rank != 2)}, output_size=None, "
        f"data_format='{_layout}', name=None",
    )(transposed)
