"""Pooling over image regions, and deformable convolution."""

from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, boxes, constant, distinct, uniform

_MOST = 400_000  # the largest number of values that a rule lists
_BOXES = 64  # of one step, to limit memory
_WEIGHTS = 1 << 23  # of one step


def lengths(total, this):
    """Nearly equal lengths that add up to `total`."""
    if not 0 < this.size <= _MOST:
        return constant(0)
    return Literal([total * (i + 1) // this.size - total * i // this.size for i in range(this.size)])


def whole_boxes(width, height, this):
    """Boxes within an image, up to half as wide and high. Their coordinates are integers, so that computed
    coordinates are exact and rounding does not select a pixel or box."""
    width, height = max(2, int(width)), max(2, int(height))
    if this.size > _MOST or this.size % 4:
        return boxes(0, min(width, height))
    values = []
    for n in range(this.size // 4):
        w, h = 1 + n * 7919 % (width // 2), 1 + n * 6007 % (height // 2)
        x, y = n * 4787 % (width - w + 1), n * 3571 % (height - h + 1)
        values += [x, y, x + w, y + h]
    return Literal(values)


_REGIONS = {
    "boxes": lambda x, spatial_scale=1.0, *, this: whole_boxes(
        x.shape[3] / spatial_scale, x.shape[2] / spatial_scale, this
    ),
    "boxes_num": lambda boxes, this: lengths(boxes.shape[0], this),
}


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _by_image(x, boxes, boxes_num, most=_BOXES):
    """Pairs of an image and a slice of its boxes, at most `most` at once."""
    counts = boxes_num.tolist()
    if len(counts) != len(x) or sum(counts) != len(boxes):
        raise ValueError(f"boxes_num {counts} does not match {len(boxes)} boxes and {len(x)} images")
    first = 0
    for image, count in zip(x.unbind(0), counts, strict=True):
        for start in range(first, first + count, most):
            yield image, slice(start, min(start + most, first + count))
        first += count


def _mean_weights(start, extent, bins, ratio, size):
    """[box, bin, position]: the weight of each position of an axis in the mean of a bin's samples, which lie
    between two positions."""
    points = torch.ceil(extent / bins).clamp(min=1) if ratio <= 0 else torch.full_like(extent, ratio)
    most = int(points.max())
    sample = torch.arange(most)
    share = (sample + 0.5) / points[:, None]
    place = torch.arange(bins)[:, None] + share[:, None]
    at = start[:, None, None] + (extent / bins)[:, None, None] * place
    counted = (sample < points[:, None])[:, None] & (at >= -1) & (at <= size)
    weight = counted / points[:, None, None]
    at = at.clamp(0, size - 1)
    low = at.floor()
    weights = torch.zeros(len(start), bins, size, dtype=at.dtype)
    weights.scatter_add_(2, low.long(), weight * (1 - (at - low)))
    return weights.scatter_add_(2, (low + 1).clamp(max=size - 1).long(), weight * (at - low))


@api("paddle.vision.ops.roi_align", **_REGIONS)
def roi_align(
    x, boxes, boxes_num, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=True, name=None
):
    """The mean of a bin's samples, each interpolated from four pixels: a weighted sum of few pixels, with
    products of row and column weights."""
    (height, width), (rows, columns) = x.shape[2:], _pair(output_size)
    if not len(boxes):
        return x.new_zeros(0, x.shape[1], rows, columns) + 0 * x.sum()
    corners = boxes.detach().double() * spatial_scale - (0.5 if aligned else 0)
    start, extent = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        extent = extent.clamp(min=1)
    compute = torch.float64 if x.dtype == torch.float64 else torch.float32
    down = _mean_weights(start[:, 1], extent[:, 1], rows, sampling_ratio, height).to(compute)
    across = _mean_weights(start[:, 0], extent[:, 0], columns, sampling_ratio, width).to(compute)
    (row, row_weight), (column, column_weight) = _windows(down), _windows(across)
    index = torch.int32 if height * width < 1 << 31 else torch.int64  # a GPU sorts short ones faster
    row, column = row.to(index) * width, column.to(index)
    weights = rows * columns * row.shape[2] * column.shape[2]
    pooled, converted, pixels = [], None, None
    for image, own in _by_image(x, boxes, boxes_num, max(1, _WEIGHTS // weights)):
        if image is not converted:
            converted, pixels = image, image.to(compute).flatten(1).T.contiguous()
        # [box, row of bins, column of bins, row of pixels, column of pixels]
        place = row[own][:, :, None, :, None] + column[own][:, None, :, None]
        weight = row_weight[own][:, :, None, :, None] * column_weight[own][:, None, :, None]
        some = (weight != 0).flatten(0, 2).flatten(1)  # most bins are smaller than the largest one
        counts = some.sum(1)
        bags = torch.nn.functional.embedding_bag(
            place.flatten(0, 2).flatten(1)[some],
            pixels,
            offsets=(counts.cumsum(0) - counts).to(index),
            per_sample_weights=weight.flatten(0, 2).flatten(1)[some],
            mode="sum",
        )
        pooled.append(bags.reshape(-1, rows, columns, x.shape[1]).movedim(3, 1))
    return torch.cat(pooled).to(x.dtype)


def _windows(weights):
    """For each bin of [box, bin, position] the consecutive positions with all of its weight, and their
    weights."""
    places = torch.arange(weights.shape[2])
    some = weights != 0
    first = torch.where(some, places, weights.shape[2]).amin(2)
    last = torch.where(some, places, -1).amax(2)
    length = max(1, int((last - first).max()) + 1)
    window = first.clamp(max=weights.shape[2] - length)[..., None] + torch.arange(length)
    return window, weights.gather(2, window)


def _bins(start, extent, bins, size):
    """The first position of every bin and the one after its last, [box, bin], within the image. Computed in
    float32 with a division of two tensors, because the bounds depend on the last bit."""
    start, extent = start[:, None], extent[:, None]
    step, each = extent / torch.full_like(extent, bins), torch.arange(bins, dtype=extent.dtype)
    begin = torch.floor(each * step + start).clamp(0, size)
    return begin.long(), torch.ceil((each + 1) * step + start).clamp(0, size).long()


@api("paddle.vision.ops.roi_pool", x=distinct(), equal="bits", **_REGIONS)
def roi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """The largest value of each bin, 0 outside the image; neighbouring bins may share a pixel."""
    (height, width), (rows, columns) = x.shape[2:], _pair(output_size)
    corners = torch.floor(boxes.detach() * spatial_scale + 0.5)
    start, extent = corners[:, :2], (corners[:, 2:] - corners[:, :2] + 1).clamp(min=1)
    top, bottom = (each.tolist() for each in _bins(start[:, 1], extent[:, 1], rows, height))
    left, right = (each.tolist() for each in _bins(start[:, 0], extent[:, 0], columns, width))

    def largest(image, box, row, column):
        place = image[:, top[box][row] : bottom[box][row], left[box][column] : right[box][column]]
        return place.amax((1, 2)) if place[0].numel() else place.sum((1, 2))

    pooled = [
        torch.stack([largest(image, box, row, column) for row in range(rows) for column in range(columns)], 1)
        for image, own in _by_image(x, boxes, boxes_num)
        for box in range(own.start, own.stop)
    ]
    return torch.stack(pooled).unflatten(2, (rows, columns))


@api("paddle.vision.ops.psroi_pool", **_REGIONS)
def psroi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """Each bin has its own channels and takes their mean; 0 outside the image."""
    (height, width), (rows, columns) = x.shape[2:], _pair(output_size)
    corners = torch.floor(boxes.detach() + 0.5)
    start = corners[:, :2] * spatial_scale
    extent = ((corners[:, 2:] + 1) * spatial_scale - start).clamp(min=0.1)
    down = _mean_of_bins(*_bins(start[:, 1], extent[:, 1], rows, height), height).to(x.dtype)
    across = _mean_of_bins(*_bins(start[:, 0], extent[:, 0], columns, width), width).to(x.dtype)
    pooled = []
    for image, own in _by_image(x, boxes, boxes_num):
        planes = image.unflatten(0, (-1, rows, columns))
        halfway = torch.einsum("rph,cpqhw->rcpqw", down[own], planes)
        pooled.append(torch.einsum("rcpqw,rqw->rcpq", halfway, across[own]))
    return torch.cat(pooled)


def _mean_of_bins(begin, end, size):
    place = torch.arange(size)
    within = (place >= begin[..., None]) & (place < end[..., None])
    # In float64: a quotient of integers would have the digits of float32.
    return within.double() / (end - begin).clamp(min=1)[..., None]


@api("paddle.vision.ops.deform_conv2d", offset=uniform(0.1, 0.9), mask=uniform(0.1, 1.1))
def deform_conv2d(
    x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1, mask=None,
    name=None,
):  # fmt: skip
    """The weighted sum of values at shifted positions, interpolated between pixels, 0 outside."""
    batch, channels, height, width = x.shape
    high, wide, (rows, columns) = *weight.shape[2:], offset.shape[2:]
    steps = [_pair(each) for each in (stride, padding, dilation)]
    down, across = (
        torch.arange(size)[:, None] * step[0] - step[1] + torch.arange(taps) * step[2]
        for size, taps, step in zip((rows, columns), (high, wide), zip(*steps, strict=True), strict=True)
    )
    # [batch * group, row or column, tap, row of the result, column of the result]
    shift = offset.reshape(batch * deformable_groups, high * wide, 2, rows, columns)
    y = shift[:, :, 0] + down.T.repeat_interleave(wide, 0)[:, :, None]
    x_at = shift[:, :, 1] + across.T.repeat(high, 1)[:, None]
    grid = torch.stack(((2 * x_at + 1) / width - 1, (2 * y + 1) / height - 1), -1)
    source = x.reshape(batch * deformable_groups, channels // deformable_groups, height, width)
    taken = torch.nn.functional.grid_sample(source, grid.flatten(2, 3), align_corners=False)
    taken = taken.reshape(batch, deformable_groups, -1, high * wide, rows * columns)
    if mask is not None:
        taken = taken * mask.reshape(batch, deformable_groups, 1, high * wide, rows * columns)
    taken = taken.reshape(batch, groups, channels // groups * high * wide, rows * columns)
    kernels = weight.reshape(groups, -1, taken.shape[2])
    result = (kernels @ taken).reshape(batch, -1, rows, columns)
    return result if bias is None else result + bias.reshape(-1, 1, 1)
