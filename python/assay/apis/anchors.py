"""Prior boxes, their coding, and YOLO."""

from math import sqrt

from assay.known_deviation import avoids
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, boxes, integers, positive, uniform
from assay.shorthand import FROM_SHAPES, NO_BACKWARD


def _listed(value):
    return [value] if isinstance(value, int | float) else list(value or [])


@api("paddle.vision.ops.prior_box", grad=FROM_SHAPES)
def prior_box(
    input, image, min_sizes, max_sizes=None, aspect_ratios=(1.0,), variance=(0.1, 0.1, 0.2, 0.2), flip=False,
    clip=False, steps=(0.0, 0.0), offset=0.5, min_max_aspect_ratios_order=False, name=None,
):  # fmt: skip
    """The same boxes at every position of the feature map, as shares of the image."""
    min_sizes, max_sizes = _listed(min_sizes), _listed(max_sizes)
    ratios = [1.0]
    for ratio in _listed(aspect_ratios):
        for each in (ratio, 1 / ratio) if flip else (ratio,):
            if all(abs(each - other) >= 1e-6 for other in ratios):
                ratios.append(each)
    sizes = []
    for n, size in enumerate(min_sizes):
        of_ratios = [(size * sqrt(ratio), size / sqrt(ratio)) for ratio in ratios]
        of_both = [(sqrt(size * each),) * 2 for each in max_sizes[n : n + 1]]
        first = 1 if min_max_aspect_ratios_order else len(ratios)
        sizes += of_ratios[:first] + of_both + of_ratios[first:]
    (rows, columns), (height, width) = input.shape[2:], image.shape[2:]
    if not input.numel() or not image.numel():
        return (input.new_zeros(rows, columns, len(sizes), 4),) * 2
    step_w, step_h = steps if isinstance(steps, list | tuple) else (steps, steps)
    if not step_w or not step_h:
        step_w, step_h = width / columns, height / rows
    y, x = torch.meshgrid(
        (torch.arange(rows) + offset) * step_h, (torch.arange(columns) + offset) * step_w, indexing="ij"
    )
    centre, half = torch.stack((x, y), -1)[:, :, None], torch.tensor(sizes) / 2
    extent = torch.tensor([width, height])
    priors = torch.cat(((centre - half) / extent, (centre + half) / extent), -1).to(input.dtype)
    variances = torch.tensor(variance, dtype=input.dtype).expand(priors.shape)
    return priors.clamp(0, 1) if clip else priors, variances


@api(
    "paddle.vision.ops.box_coder",
    prior_box=boxes(0, 100),
    prior_box_var=positive(0.1, 0.5),
    target_box=lambda code_type="encode": boxes(0, 100) if code_type.startswith("encode") else None,
    grad=NO_BACKWARD,
    traits={"sums": False, "coordinates": False, "near_one": 0.0},
)
def box_coder(
    prior_box, prior_box_var, target_box, code_type="encode_center_size", box_normalized=True, axis=0,
    name=None,
):  # fmt: skip
    """Encoding gives each target relative to each prior box; decoding is the inverse."""
    offset = 0 if box_normalized else 1
    variance = torch.ones(4) if prior_box_var is None else prior_box_var
    variance = torch.as_tensor(variance, dtype=target_box.dtype)
    size = prior_box[:, 2:] - prior_box[:, :2] + offset
    centre = prior_box[:, :2] + size / 2
    if code_type == "encode_center_size":
        target = target_box[:, None]
        extent = target[..., 2:] - target[..., :2] + offset
        shift = ((target[..., 2:] + target[..., :2]) / 2 - centre) / size
        return torch.cat((shift, torch.log(torch.abs(extent / size))), -1) / variance
    if axis:
        size, centre = size[:, None], centre[:, None]
        variance = variance[:, None] if variance.ndim == 2 else variance
    delta = variance * target_box
    centre, extent = delta[..., :2] * size + centre, torch.exp(delta[..., 2:]) * size
    return torch.cat((centre - extent / 2, centre + extent / 2 - offset), -1)


def _predicted(x, anchors, scale_x_y, input_size):
    """Centre and size, as shares of the image, of the boxes in x: [batch, anchor, 4, row, column]."""
    rows, columns = x.shape[3:]
    scaled = torch.sigmoid(x[:, :, :2]) * scale_x_y - 0.5 * (scale_x_y - 1)
    place = torch.stack(torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy"))
    centre = (scaled + place) / torch.tensor([columns, rows])[:, None, None]
    sizes = torch.tensor(anchors).reshape(-1, 2)
    return centre, torch.exp(x[:, :, 2:4]) * (sizes / torch.tensor(input_size))[:, :, None, None]


@api("paddle.vision.ops.yolo_box", x=uniform(-6, 3), img_size=integers(100, 500), grad=NO_BACKWARD)
def yolo_box(
    x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox=True, name=None, scale_x_y=1.0,
    iou_aware=False, iou_aware_factor=0.5,
):  # fmt: skip
    """Boxes in pixels, and a score for each class; boxes below the threshold are zeros."""
    batch, _, rows, columns = x.shape
    count = len(anchors) // 2
    if not x.numel():
        return tuple(x.new_zeros(batch, count * rows * columns, each) for each in (4, class_num))
    iou, x = x[:, :count], x[:, count if iou_aware else 0 :].unflatten(1, (count, -1))
    confidence = torch.sigmoid(x[:, :, 4])
    if iou_aware:
        confidence = confidence ** (1 - iou_aware_factor) * torch.sigmoid(iou) ** iou_aware_factor
    input_size = (downsample_ratio * columns, downsample_ratio * rows)
    image = img_size.flip(1)[:, None, :, None, None].to(x.dtype)
    centre, size = (share * image for share in _predicted(x, anchors, scale_x_y, input_size))
    near, far = centre - size / 2, centre + size / 2
    if clip_bbox:
        near, far = near.clamp(min=0), torch.minimum(far, image - 1)
    counted = (confidence >= conf_thresh)[:, :, None]
    found = torch.where(counted, torch.cat((near, far), 2), 0)
    scores = torch.where(counted, torch.sigmoid(x[:, :, 5:]) * confidence[:, :, None], 0)
    return tuple(each.movedim(2, 4).flatten(1, 3) for each in (found, scores))


def _apart(x, this):
    """Ground-truth boxes x, y, w, h with centres in distinct cells, as long as there are enough cells."""
    rows, columns = x.shape[2:]
    if this.size > 100_000 or rows * columns == 0:
        return uniform(0.1, 0.9)
    values = []
    for n in range(this.size // 4):
        cell = n * 7 % (rows * columns) if rows * columns % 7 else n % (rows * columns)
        values += [(cell % columns + 0.375) / columns, (cell // columns + 0.625) / rows]
        values += [0.05 + n * 0.13 % 0.5, 0.07 + n * 0.17 % 0.6]
    return Literal(values)


@api(
    "paddle.vision.ops.yolo_loss",
    gt_box=_apart,
    gt_label=integers(0, lambda class_num: class_num),
    gt_score=positive(),
    known_deviation=avoids(
        "no two ground-truth boxes share a cell; the gradient would count only the last one"
    ),
)
def yolo_loss(
    x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None,
    use_label_smooth=True, name=None, scale_x_y=1.0,
):  # fmt: skip
    """Each ground-truth box trains the anchor most similar to it. Other predictions are trained as
    background, unless they overlap a box by more than the threshold."""
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    batch, _, rows, columns = x.shape
    input_size = downsample_ratio * rows
    x = x.unflatten(1, (len(anchor_mask), -1))
    gt_box = gt_box.detach()
    score = torch.ones_like(gt_box[:, :, 0]) if gt_score is None else gt_score.detach()
    all_sizes = torch.tensor(anchors, dtype=x.dtype).reshape(-1, 2) / input_size
    true = (gt_box[:, :, 2:] >= 1e-6).all(2)

    # The anchor most similar to each box, if it belongs to this head.
    shared = torch.minimum(all_sizes, gt_box[:, :, None, 2:]).prod(-1)
    likeness = shared / (all_sizes.prod(-1) + gt_box[:, :, None, 2:].prod(-1) - shared)
    best = likeness.argmax(-1)
    image, which = torch.nonzero(true & torch.isin(best, torch.tensor(anchor_mask)), as_tuple=True)
    best, box, score = best[image, which], gt_box[image, which], score[image, which]
    head = torch.tensor([anchor_mask.index(each) for each in best.tolist()], dtype=torch.int64)
    column, row = (box[:, 0] * columns).long(), (box[:, 1] * rows).long()

    chosen = x[image, head, :, row, column]  # [box, entry]
    at = torch.stack((box[:, 0] * rows - column, box[:, 1] * rows - row), 1)
    error = entropy(chosen[:, :2], at, reduction="none") + torch.abs(
        chosen[:, 2:4] - torch.log(box[:, 2:] / all_sizes[best])
    )
    smooth = min(1 / class_num, 1 / 40) if use_label_smooth else 0.0
    wanted = torch.nn.functional.one_hot(gt_label[image, which].long(), class_num) * (1 - 2 * smooth) + smooth
    labels = entropy(chosen[:, 5:], wanted.to(x.dtype), reduction="none")
    of_boxes = (error.sum(1) * (2 - box[:, 2] * box[:, 3]) + labels.sum(1)) * score

    # Objectness: 1 for matched predictions, weighted by the box's score; else 0, or ignored.
    sizes = [anchors[2 * each + i] for each in anchor_mask for i in (0, 1)]
    centre, size = _predicted(x.detach(), sizes, scale_x_y, [input_size, input_size])
    near, far = ((centre + sign * size / 2)[:, :, None] for sign in (-1, 1))
    gt = gt_box[:, None, :, :, None, None]
    shared = torch.minimum(far, gt[:, :, :, :2] + gt[:, :, :, 2:] / 2)
    shared = (shared - torch.maximum(near, gt[:, :, :, :2] - gt[:, :, :, 2:] / 2)).clamp(min=0).prod(3)
    overlap = shared / (size.prod(2)[:, :, None] + gt[:, :, :, 2:].prod(3) - shared)
    overlap = torch.where(true[:, None, :, None, None], overlap, 0)
    weight = (overlap.amax(2) <= ignore_thresh).to(x.dtype)
    cell = ((image * len(anchor_mask) + head) * rows + row) * columns + column
    last = torch.full_like(weight, -1, dtype=torch.int64).flatten()  # the last box of each cell counts
    last = last.scatter_reduce(0, cell, torch.arange(len(cell)), "amax").view_as(weight)
    weight = torch.where(last < 0, weight, torch.cat((score, score.new_zeros(1)))[last])
    object_there = (last >= 0).to(x.dtype)
    of_objects = (entropy(x[:, :, 4], object_there, reduction="none") * weight).sum((1, 2, 3))
    return of_objects.index_add(0, image, of_boxes)
