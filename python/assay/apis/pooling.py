"""Pooling over windows: maxima, means and norms."""

import math

from assay import draw_distribution
from assay.apis.loss import functional
from assay.apis.windows import LAYOUTS, channels_back, channels_second, each, of_nothing, padded, paddings
from assay.arguments import widened
from assay.reference import torch
from assay.registry import api
from assay.rules import distinct, positive
from assay.shorthand import SELECTS, UNCENTRED


class Windows:
    """A map x, channels second, and the windows over it."""

    def __init__(self, x, kernel, stride, padding, ceil_mode, data_format):
        self.data_format = data_format
        self.dtype = x.dtype
        self.x = x = channels_second(x, data_format)
        self.kernel = each(kernel, x.ndim - 2)
        self.stride = self.kernel if stride is None else each(stride, x.ndim - 2)
        self.pairs = paddings(padding, x.shape[2:], self.kernel, self.stride, data_format)
        self.counts, self.whole = [], []  # the number of windows; the padding with which all fit
        for n, k, s, (before, after) in zip(x.shape[2:], self.kernel, self.stride, self.pairs, strict=True):
            count = (n + before + after - k + (s - 1 if ceil_mode else 0)) // s + 1
            if count < 1 and x.numel():
                raise NotImplementedError(
                    f"the reference has no window of {k} over {n} values"
                )  # Paddle returns an empty result
            self.counts.append(max(0, count))
            self.whole.append((before, max(after, (count - 1) * s + k - n - before)))

    def run(self, pool, x, pairs, fill, **options):
        """The pool over x with these paddings. PyTorch rejects zero channels but accepts an empty batch."""
        y = padded(x.reshape(-1, 1, *x.shape[2:]), pairs, fill)
        return pool(y, self.kernel, self.stride, **options)

    def sums(self, x, pairs):
        pool = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[len(self.kernel) - 1]
        return self.run(pool, x, pairs, 0) * math.prod(self.kernel)

    def result(self, y):
        y = y.reshape(*self.x.shape[:2], *self.counts)
        return channels_back(y, self.data_format).to(self.dtype)

    def of_nothing(self, dtype=None):
        return of_nothing(self.x, self.counts, self.data_format, dtype)


def flat_index(index, widths, sizes, pairs):
    """Indices into a padded map as indices into the map."""
    result, scale = 0, 1
    for width, size, (before, _) in zip(reversed(widths), reversed(sizes), reversed(pairs), strict=True):
        result, scale = result + (index % width - before) * scale, scale * size
        index = index // width
    return result.int()


def max_pooled(x, kernel_size, stride, padding, return_mask, ceil_mode, data_format="NCL"):
    windows = Windows(x, kernel_size, stride, padding, ceil_mode, data_format)
    if not x.numel():
        empty = windows.of_nothing()
        return (empty, windows.of_nothing(torch.int32)) if return_mask else empty
    pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[len(windows.kernel) - 1]
    lowest = torch.finfo(x.dtype).min
    if not return_mask:
        return windows.result(windows.run(pool, windows.x, windows.whole, lowest))
    y, index = windows.run(pool, windows.x, windows.whole, lowest, return_indices=True)
    sizes = windows.x.shape[2:]
    widths = [n + sum(pair) for n, pair in zip(sizes, windows.whole, strict=True)]
    return windows.result(y), flat_index(index, widths, sizes, windows.whole).reshape(windows.result(y).shape)


def avg_pooled(
    x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override=None, data_format="NCL"
):
    """`exclusive` does not count padding. Elements that ceil_mode adds beyond the padding never count."""
    windows = Windows(x, kernel_size, stride, padding, ceil_mode, data_format)
    if not x.numel():
        return windows.of_nothing()
    y, divisor = widened(windows.x), divisor_override
    if divisor is None:
        ones = y.new_ones(1, 1, *y.shape[2:])
        pairs = windows.whole
        if not exclusive:
            ones = padded(ones, windows.pairs, 1)
            pairs = [(0, more - last) for (_, more), (_, last) in zip(pairs, windows.pairs, strict=True)]
        divisor = windows.sums(ones, pairs)
    return windows.result(windows.sums(y, windows.whole) / divisor)


def lp_pooled(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format):
    if norm_type == math.inf:
        return max_pooled(x, kernel_size, stride, padding, False, ceil_mode, data_format)
    windows = Windows(x, kernel_size, stride, padding, ceil_mode, data_format)
    if not x.numel():
        return windows.of_nothing()
    if norm_type == -math.inf:  # x ** norm_type and its gradient are infinite
        return draw_distribution.anything(
            windows.result(windows.sums(windows.x, windows.whole)).shape, x.dtype
        )
    return windows.result(windows.sums(widened(windows.x) ** norm_type, windows.whole) ** (1 / norm_type))


# The root of a sum of powers multiplies rounding errors by the power.
POWERS = {"chained": True, "exact_sums": False}


def _promised(norm_type):
    """For -inf only the shape is compared."""
    return norm_type != -math.inf


_KERNEL = "kernel_size, stride=None, padding=0"

for _rank, _layout in enumerate(LAYOUTS, 1):
    _format = f", data_format='{_layout}'" if _rank > 1 else ""
    api(
        f"paddle.nn.functional.max_pool{_rank}d",
        x=distinct(),
        traits=SELECTS,
        signature=f"x, {_KERNEL}, return_mask=False, ceil_mode=False{_format}, name=None",
    )(max_pooled)
    _options = "ceil_mode=False, exclusive=True, divisor_override=None"
    _options = _options if _rank > 1 else "exclusive=True, ceil_mode=False"
    api(
        f"paddle.nn.functional.avg_pool{_rank}d",
        x=UNCENTRED,
        signature=f"x, {_KERNEL}, {_options}{_format}, name=None",
    )(avg_pooled)
    if _rank < 3:
        api(
            f"paddle.nn.functional.lp_pool{_rank}d",
            x=positive(),
            grad=_promised,
            traits=POWERS,
            signature=f"x, norm_type, {_KERNEL}, ceil_mode=False, data_format='{_layout}', name=None",
        )(lp_pooled)
