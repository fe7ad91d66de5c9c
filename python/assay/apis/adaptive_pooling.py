"""Pooling to a given size, and unpooling."""

import math

from assay import draw_distribution
from assay.apis.loss import functional
from assay.apis.windows import LAYOUTS, channels_back, channels_second, each, of_nothing
from assay.arguments import as_ints
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, constant, distinct, integers
from assay.shorthand import SELECTS, UNCENTRED

SIZE = integers(2, 5)
SMALL = 65536


def output_sizes(output_size, sizes):
    """The requested sizes; None stands for the input's own."""
    if isinstance(output_size, torch.Tensor):
        output_size = as_ints(output_size)
    wanted = each(output_size, len(sizes))
    return [n if size is None else as_ints(size)[0] for size, n in zip(wanted, sizes, strict=True)]


def adaptive_avg(x, output_size, data_format="NCL"):
    y = channels_second(x, data_format)
    sizes = output_sizes(output_size, y.shape[2:])
    if not x.numel():
        return of_nothing(y, sizes, data_format)
    pools = functional.adaptive_avg_pool1d, functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d
    return channels_back(pools[y.ndim - 3](y, sizes), data_format)


for _rank, _layout in enumerate(LAYOUTS, 1):
    _format = f", data_format='{_layout}'" if _rank > 1 else ""
    api(
        f"paddle.nn.functional.adaptive_avg_pool{_rank}d",
        cost="resize",
        signature=f"x, output_size{_format}, name=None",
        rules={"x": UNCENTRED} | ({"output_size": SIZE} if _rank > 1 else {}),
    )(adaptive_avg)


@api(
    "paddle.nn.functional.adaptive_max_pool1d",
    "paddle.nn.functional.adaptive_max_pool2d",
    "paddle.nn.functional.adaptive_max_pool3d",
    cost="resize",
    x=distinct(),
    traits=SELECTS,
)
def adaptive_max_pool(x, output_size, return_mask=False, name=None):
    pools = functional.adaptive_max_pool1d, functional.adaptive_max_pool2d, functional.adaptive_max_pool3d
    sizes = output_sizes(output_size, x.shape[2:])
    if not x.numel():
        empty = of_nothing(x, sizes, "NCHW")
        return (empty, of_nothing(x, sizes, "NCHW", torch.int32)) if return_mask else empty
    result, index = pools[x.ndim - 3](x, sizes, return_indices=True)
    return (result, index.int()) if return_mask else result


def fractions(size, windows, kernel, u):
    """The indices of each window, padded to one length with their last index."""
    step = torch.tensor((size - kernel) / max(1, windows - (kernel > 0)), dtype=torch.float32)
    if not kernel:
        base = size // windows
        u = u * min((base + 2) / float(step) - 1, (size + 1 - base) / float(step) - (windows - 1))
    u = torch.tensor(u, dtype=torch.float32)
    edges = ((torch.arange(windows + 1) + u) * step).long() - (u * step).long()
    starts, ends = edges[:-1], edges[:-1] + kernel if kernel else edges[1:]
    ends = ends.clamp(max=size)
    width = int((ends - starts).max())
    return torch.minimum(starts[:, None] + torch.arange(width), ends[:, None] - 1)


@api(
    "paddle.nn.functional.fractional_max_pool2d",
    "paddle.nn.functional.fractional_max_pool3d",
    x=distinct(),
    traits=SELECTS,
    grad=lambda random_u=None: random_u is not None,
)
def fractional_max_pool(x, output_size, kernel_size=None, random_u=None, return_mask=False, name=None):
    """Without `random_u` Paddle draws one, and only the shape is compared."""
    spatial = x.shape[2:]
    sizes = output_sizes(output_size, spatial)
    if random_u is None:
        result = draw_distribution.anything((*x.shape[:2], *sizes), x.dtype)
        return (result, draw_distribution.anything(result.shape, torch.int32)) if return_mask else result
    if not 0 < random_u < 1:
        raise ValueError("random_u must be between 0 and 1")
    if not x.numel():
        empty = of_nothing(x, sizes, "NCHW")
        return (empty, of_nothing(x, sizes, "NCHW", torch.int32)) if return_mask else empty
    kernels = each(kernel_size or 0, len(spatial))
    y, index = x, torch.zeros(1, dtype=torch.int64, device=x.device)
    for k, (n, count, kernel) in enumerate(zip(spatial, sizes, kernels, strict=True)):
        taken = fractions(n, count, kernel, random_u).to(x.device)
        y = y.index_select(k + 2, taken.reshape(-1)).unflatten(k + 2, taken.shape).movedim(k + 3, -1)
        shape = [1] * (2 * len(spatial))
        shape[k], shape[k + len(spatial)] = taken.shape
        index = index * n + taken.reshape(shape)
    y, chosen = y.flatten(-len(spatial)).max(-1)
    if not return_mask:
        return y
    return y, index.flatten(-len(spatial)).expand(*y.shape, -1).gather(-1, chosen[..., None])[..., 0].int()


def default_sizes(x, kernel_size, stride=None, padding=0):
    count = len(x.shape) - 2
    kernel, padding = each(kernel_size, count), each(padding, count)
    stride = kernel if stride is None else each(stride, count)
    return [(n - 1) * s + k - 2 * p for n, k, s, p in zip(x.shape[2:], kernel, stride, padding, strict=True)]


def places(this, x, kernel_size, stride=None, padding=0, output_size=None):
    """A distinct, spread-out position for each value of a map, as far as the result has room."""
    sizes = output_size or default_sizes(x, kernel_size, stride, padding)
    room = max(1, math.prod(sizes[2 - len(x.shape) :]))
    if this.size > SMALL:
        return integers(0, room)
    values = max(1, math.prod(this.shape[2:]))
    return Literal([k % values * max(1, room // values) % room for k in range(this.size)])


def alike(this):
    """Equal values where positions may coincide, so that the order of writing does not matter."""
    return constant(1) if this.size > SMALL else None


@api(
    "paddle.nn.functional.max_unpool1d",
    "paddle.nn.functional.max_unpool2d",
    "paddle.nn.functional.max_unpool3d",
    x=alike,
    indices=places,
)
def max_unpool(
    x, indices, kernel_size, stride=None, padding=0, data_format="NCHW", output_size=None, name=None
):
    natural = default_sizes(x, kernel_size, stride, padding)
    sizes = list(output_size or natural)[2 - x.ndim :]
    steps = each(kernel_size if stride is None else stride, len(sizes))
    if any(abs(size - n) >= step for size, n, step in zip(sizes, natural, steps, strict=True)):
        raise ValueError(f"output_size {sizes} does not fit {natural} and stride {steps}")
    if indices.shape != x.shape or data_format[-1] == "C":
        raise ValueError(f"indices of shape {tuple(indices.shape)} do not match x of shape {tuple(x.shape)}")
    flat = x.new_zeros(*x.shape[:2], math.prod(sizes))
    return flat.scatter(2, indices.long().flatten(2), x.flatten(2)).unflatten(2, sizes)
