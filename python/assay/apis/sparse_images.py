"""Sparse images and volumes: each stored position has a whole row of channels; channels last."""

from assay.apis.convolution import convolved
from assay.apis.pooling import max_pooled
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.sparse import Sparse, taken_from

IMAGE = {"x": "hybrid"}


def _windows(x, weight, stride, padding, dilation):
    """Sums of products over windows, and whether each window has a stored position."""
    count = len(x.shape) - 2
    layout = "NHWC" if count == 2 else "NDHWC"
    kernel = weight.movedim((-1, -2), (0, 1))
    y = convolved(x.dense(), kernel, None, stride, padding, dilation, 1, layout)
    ones = torch.ones(1, 1, *kernel.shape[2:], dtype=torch.float32)
    held = x.held().unsqueeze(-1).float()
    return y, convolved(held, ones, None, stride, padding, dilation, 1, layout).squeeze(-1) > 0.5


def _with(y, bias):
    return y if bias is None else y.over(lambda values: values + bias)


def _convolution(rank, layout):
    @api(f"paddle.sparse.nn.functional.conv{rank}d", layouts=IMAGE)
    def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format=layout, name=None):
        """Every window with a stored position is stored."""
        return _with(taken_from(*_windows(x, weight, stride, padding, dilation)), bias)

    @api(
        f"paddle.sparse.nn.functional.subm_conv{rank}d",
        f"paddle.sparse.nn.functional.subm_conv{rank}d_igemm",
        layouts=IMAGE,
        known_deviation=follows("`stride` and `padding` have no effect", "paddle-subm-conv-stride"),
    )
    def submanifold(
        x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format=layout, key=None,
        name=None,
    ):  # fmt: skip
        """The positions of the input, each with the window around it."""
        around = [d * (k - 1) // 2 for k, d in zip(weight.shape[:rank], _each(dilation, rank), strict=True)]
        y, _ = _windows(x, weight, 1, around, dilation)
        return _with(Sparse(x.indices, y[tuple(x.indices)], tuple(y.shape)), bias)


def _each(value, count):
    return list(value) if isinstance(value, list | tuple) else [value] * count


_convolution(2, "NHWC")
_convolution(3, "NDHWC")


@api(
    "paddle.sparse.nn.functional.max_pool3d",
    layouts=IMAGE,
    equal="bits",
    undefined={"exact": "the documentation does not say which of several equal elements gets the gradient"},
)
def pooled(x, kernel_size, stride=None, padding=0, ceil_mode=False, data_format="NDHWC", name=None):
    """The largest stored value; a window without any stays empty."""
    held = x.held().unsqueeze(-1)
    dense = x.dense().masked_fill(~held, -torch.inf)
    options = kernel_size, stride, padding, False, ceil_mode, "NDHWC"
    y, seen = max_pooled(dense, *options), max_pooled(held.float(), *options)
    return taken_from(y, seen.squeeze(-1) > 0.5)
