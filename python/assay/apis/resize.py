"""Resizing and sampling of maps."""

from array import array

from assay.apis.adaptive_pooling import adaptive_avg, output_sizes
from assay.apis.loss import functional
from assay.apis.windows import channels_back, channels_second, each
from assay.arguments import as_ints, widened
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api, same
from assay.rules import Literal, integers, literal, uniform


def nearest(place, size):
    return [(place.floor().clamp(0, size - 1), torch.ones_like(place))]


def linear(place, size):
    place = place.clamp(min=0)
    first = place.floor().clamp(max=size - 1)
    share = (place - first).clamp(max=1)
    return [(first, 1 - share), ((first + 1).clamp(max=size - 1), share)]


def cubic(place, size, a=-0.75):
    first = place.floor()
    t = place - first

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return [((first + k).clamp(0, size - 1), weight) for k, weight in enumerate(weights, -1)]


RANKS = {"linear": [1], "bilinear": [2], "bicubic": [2], "trilinear": [3], "nearest": [2, 3]}
TAPS = {"nearest": nearest, "linear": linear, "bilinear": linear, "trilinear": linear, "bicubic": cubic}


def resized(x, axis, size, ratio, mode, align_corners, align_mode):
    """x with `size` values along the axis, each a weighted sum of a few values."""
    old = x.shape[axis]
    places = torch.arange(size, dtype=torch.float32, device=x.device)
    if align_corners:
        places = places * ((old - 1) / (size - 1) if size > 1 else 0)
    elif mode == "nearest" or (align_mode == 1 and mode != "bicubic"):
        places = places * torch.tensor(ratio, dtype=torch.float32)
    else:
        places = (places + 0.5) * torch.tensor(ratio, dtype=torch.float32) - 0.5
    shape = [-1] + [1] * (x.ndim - 1 - axis)
    return sum(
        x.index_select(axis, index.long()) * weight.to(x.dtype).reshape(shape)
        for index, weight in TAPS[mode](places, old)
    )


def scales(scale_factor, count):
    values = scale_factor.reshape(-1).tolist() if isinstance(scale_factor, torch.Tensor) else scale_factor
    values = values * count if isinstance(values, list) and len(values) == 1 else values
    return [float(value) for value in each(values, count)]


@api(
    "paddle.nn.functional.interpolate",
    "paddle.nn.functional.upsample",
    cost="resize",
    size=integers(3, 9),
    scale_factor=uniform(1.1, 2.4),
    known_deviation=follows(
        "coordinates are computed in float32 even for float64; their floor selects the pixel"
    ),
)
def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format=None,
    recompute_scale_factor=None, antialias=False, name=None,
):  # fmt: skip
    data_format = data_format or "NCHW"
    mode = mode.lower()
    y = channels_second(x, data_format)
    old = y.shape[2:]
    if mode == "area":
        return adaptive_avg(x, size, "NCHW")
    if len(old) not in RANKS[mode] or (size is None) == (scale_factor is None):
        raise ValueError(
            f"{mode} does not accept {x.ndim} dimensions, size {size} and scale_factor {scale_factor}"
        )
    if size is not None:
        new = output_sizes(size, old)
        ratios = [n / m for n, m in zip(old, new, strict=True)]
    else:
        factors = scales(scale_factor, len(old))
        new = [int(f * n) for n, f in zip(old, factors, strict=True)]
        ratios = [1 / factor if new != list(old) else 1 for factor in factors]
    if min(new) <= 0:
        raise ValueError(f"size {new} is not positive")
    y = widened(y)
    for axis, (m, ratio) in enumerate(zip(new, ratios, strict=True), 2):
        y = resized(y, axis, m, ratio, mode, align_corners, align_mode)
    return channels_back(y, data_format).to(x.dtype)


_MOST = 3_000_000  # values that are listed; larger cases have no error bar
_PERIOD = 4093  # the number of points after which they repeat
_BEYOND = uniform(-1.2, 1.2)


# By position among eight points: how many images away it lies.
_FAR = {3: 3, 6: -4}


def between_pixels(x, align_corners=True, *, this):
    """Points in and around an image, and some beyond two reflections, at an odd number of eighths of a pixel:
    at a pixel and halfway between two the gradient jumps, or the nearest pixel changes."""
    extents = x.shape[:1:-1]  # the first coordinate of a point is the last axis of the image
    if this.shape[-1:] != (len(extents),) or not 0 < this.size <= _MOST or 0 in extents:
        return _BEYOND
    points = array("d")
    for n in range(min(_PERIOD, this.size // len(extents))):
        for axis, extent in enumerate(extents):
            pixel = n * 7919 // (1 + axis * 3) % (extent + 2) - 1 + (2 * ((n * 5 + axis) % 4) + 1) / 8
            pixel += _FAR.get(n % 8, 0) * extent
            span = extent - 1 if align_corners else extent
            points.append((2 * pixel + (not align_corners)) / max(span, 1) - 1)
    return Literal((points * (this.size // len(points) + 1))[: this.size])


def neighbours(x):
    return 2 ** (x.ndim - 2)


def of_a_gradient(x, grid):
    """The number of terms: a point's gradient sums channels, a pixel's sums four times the points per
    pixel."""
    points, pixels = grid.size / (x.ndim - 2), max(1, x.size // max(1, x.shape[1]))
    return neighbours(x) * max(x.shape[1], 4 * points / pixels, 1)


same(
    'x, grid, mode="bilinear", padding_mode="zeros", align_corners=True, name=None',
    "paddle.nn.functional.grid_sample",
    home="torch.nn.functional",
    grid=between_pixels,
    traits={
        "coordinates": lambda x: max(x.shape[2:], default=1),
        "terms": neighbours,
        "terms_back": of_a_gradient,
    },
)


@api(
    "paddle.nn.functional.affine_grid",
    out_shape=literal(lambda theta: [theta.shape[0], 3, 4, 5, 6][: theta.shape[1] + 2]),
)
def affine_grid(theta, out_shape, align_corners=True, name=None):
    return functional.affine_grid(theta, as_ints(out_shape), align_corners)
