"""Padding, and rearrangement of pixels and channels."""

from collections.abc import Sequence

from assay.apis.loss import functional
from assay.apis.windows import channels_back, channels_second, each, padded
from assay.arguments import as_ints
from assay.reference import torch
from assay.registry import api
from assay.rules import integers


def extended(x, axis, before, after, mode):
    """x extended along the axis with values of its own."""
    size = x.shape[axis]
    index = torch.arange(-before, size + after, device=x.device)
    if mode == "replicate":
        index = index.clamp(0, size - 1)
    elif mode == "circular":
        index = index % size
    else:
        if max(before, after) >= size:
            raise ValueError(f"cannot reflect {before} and {after} values of an axis of extent {size}")
        index = (size - 1) - (index.abs() - (size - 1)).abs()
    return x.index_select(axis, index)


@api("paddle.nn.functional.pad", pad=integers(0, 2))
def pad(x, pad, mode="constant", value=0.0, data_format=None, pad_from_left_axis=True, name=None):
    """Amounts in PyTorch's order, from the last axis: for the spatial axes if there is one pair for each or
    `pad` is a tensor, else for any axes. With a pair for every axis they start at the first axis."""
    amounts = as_ints(pad)
    value = value.item() if isinstance(value, torch.Tensor) else value
    everywhere = mode == "constant" and isinstance(pad, Sequence) and len(amounts) != 2 * (x.ndim - 2)
    if not amounts:
        return x.clone()
    pairs = list(zip(amounts[::2], amounts[1::2], strict=True))
    if everywhere:
        if len(pairs) < x.ndim or not pad_from_left_axis:
            pairs = pairs[::-1]
        return padded(x, pairs, value)
    data_format = data_format or "NCHW"
    y = channels_second(x, data_format)
    if not 3 <= x.ndim <= 5 or len(pairs) != x.ndim - 2:
        raise ValueError(f"{len(pairs)} pairs of padding do not match {x.ndim} dimensions")
    if mode == "constant":
        y = padded(y, pairs[::-1], value)
    else:
        for axis, (before, after) in enumerate(reversed(pairs), 2):
            y = extended(y, axis, before, after, mode)
    return channels_back(y, data_format)


@api("paddle.nn.functional.zeropad2d", padding=integers(0, 3))
def zeropad2d(x, padding, data_format="NCHW", name=None):
    return pad(x, padding, data_format=data_format)


def sides(paddings):
    """(before, after) of height and width, from one, two or four values: top, left, bottom, right."""
    top, left, bottom, right = each(paddings * 2 if len(paddings) == 2 else paddings, 4)
    return [(top, bottom), (left, right)]


@api("paddle.nn.functional.unfold")
def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    y = padded(x, sides([paddings] * 4 if isinstance(paddings, int) else list(paddings)))
    y = y.reshape(-1, 1, *y.shape[2:])  # PyTorch rejects zero channels but accepts an empty batch
    y = functional.unfold(y, each(kernel_sizes, 2), each(dilations, 2), 0, each(strides, 2))
    return y.reshape(x.shape[0], x.shape[1] * y.shape[1], y.shape[2])


@api("paddle.nn.functional.fold")
def fold(x, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    pairs = sides([paddings] * 4 if isinstance(paddings, int) else list(paddings))
    sizes = [n + sum(pair) for n, pair in zip(each(output_sizes, 2), pairs, strict=True)]
    y = functional.fold(x, sizes, each(kernel_sizes, 2), each(dilations, 2), 0, each(strides, 2))
    return padded(y, [(-before, -after) for before, after in pairs])


@api("paddle.nn.functional.pixel_shuffle")
def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    r, y = upscale_factor, channels_second(x, data_format)
    y = y.unflatten(1, (y.shape[1] // r**2, r, r)).permute(0, 1, 4, 2, 5, 3)
    return channels_back(y.flatten(4, 5).flatten(2, 3), data_format)


@api("paddle.nn.functional.pixel_unshuffle")
def pixel_unshuffle(x, downscale_factor, data_format="NCHW", name=None):
    r, y = downscale_factor, channels_second(x, data_format)
    y = y.unflatten(3, (y.shape[3] // r, r)).unflatten(2, (y.shape[2] // r, r)).permute(0, 1, 3, 5, 2, 4)
    return channels_back(y.flatten(1, 3), data_format)


@api("paddle.nn.functional.channel_shuffle")
def channel_shuffle(x, groups, data_format="NCHW", name=None):
    y = channels_second(x, data_format)
    y = y.unflatten(1, (groups, y.shape[1] // groups)).transpose(1, 2).flatten(1, 2)
    return channels_back(y, data_format)
