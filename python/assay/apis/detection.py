"""Detection: boxes, their proposal, coding and suppression."""

from array import array
from math import isqrt

from assay.apis.regions import lengths, whole_boxes
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, boxes, distinct, integers, positive
from assay.shorthand import COUNTS

_MOST = 1_500_000  # the largest number of values that a rule lists
_LISTED = 1 << 16
_CELL = 64
_BLOCK = 128  # boxes of a block in _survivors…
_BLOCK_OF_GPU = 1024  # … where a call costs more than what it computes

# A JPEG file of 16 x 8 grey pixels: one block of 138 and one of 128, which every decoder reproduces exactly.
_JPEG = bytes.fromhex(
    "FFD8 FFDB004300" + "08" * 64 + "FFC0000B080008001001011100"
    "FFC4001400 01" + "00" * 15 + "04 FFC4001410 01" + "00" * 15 + "00 FFDA0008010100003F00 50AF FFD9"
)


@api(
    "paddle.vision.ops.decode_jpeg",
    x=lambda this: Literal([*_JPEG, *[0] * (this.size - len(_JPEG))][: this.size]),
)
def decode_jpeg(x, mode="unchanged", name=None):
    """The image of the file that the value rule gives."""
    blocks = torch.tensor([138, 128], dtype=torch.uint8).repeat_interleave(8)
    return blocks.expand(3 if mode == "rgb" else 1, 8, 16)


def _overlaps(boxes, others, offset):
    """[box, other]: their intersection over union."""
    one, other = boxes.T.contiguous()[:, :, None], others.T.contiguous()[:, None]
    sides = torch.minimum(one[2:], other[2:]).sub_(torch.maximum(one[:2], other[:2]))
    shared = sides.add_(offset).clamp_(min=0).prod(0)
    areas = [(each[2:] - each[:2] + offset).prod(0) for each in (one, other)]
    return shared / (areas[0] + areas[1] - shared)


def _survivors(candidates, threshold, offset=0.0, most=None, eta=1.0):
    """Indices of the boxes that overlap no earlier surviving box by more than the threshold.

    The boxes of a block that survive the earlier blocks are compared with all later ones. Within the block
    each box is removed that overlaps an earlier one which is not removed, until nothing changes: after a
    few rounds this is what one box at a time gives. The threshold has the boxes' dtype, because overlaps of
    integer boxes are often equal to it. With `eta` it shrinks after each survivor.
    """
    worst = candidates.new_zeros(len(candidates))
    kept, count, start = [torch.zeros(0, dtype=torch.int64)], 0, 0
    most_in_block = _BLOCK if candidates.device.type == "cpu" else _BLOCK_OF_GPU
    while start < len(candidates) and (most is None or count < most):
        shrinks = eta < 1 and threshold > 0.5
        block = slice(start, start + (1 if shrinks else most_in_block))
        limit = candidates.new_tensor(threshold).item()
        rows = start + torch.nonzero(~(worst[block] > limit)).flatten()
        overlaps = _overlaps(candidates[rows], candidates[start:], offset)
        overlaps.nan_to_num_(nan=0.0, posinf=torch.inf)  # two boxes without area
        removes = (overlaps[:, rows - start] > limit).triu(1)
        stays, before = torch.ones(len(rows), dtype=torch.bool), None
        while before is None or not torch.equal(stays, before):
            stays, before = ~removes[stays].any(0), stays
        if (found := int(stays.sum())) > 0:
            kept.append(rows[stays])
            count += found
            torch.maximum(worst[start:], overlaps[stays].amax(0), out=worst[start:])
            threshold *= eta if shrinks else 1
        start = block.stop
    return torch.cat(kept)[:most]


def _centred(corners, offset):
    """Centre and size of boxes given by their corners."""
    size = corners[..., 2:] - corners[..., :2] + offset
    return corners[..., :2] + size / 2, size


def _cornered(centre, size, offset):
    return torch.cat((centre - size / 2, centre + size / 2 - offset), -1)


def _columns(anchors):
    """Cells of a row, a multiple of the four kinds of cells."""
    return 4 * (isqrt(anchors.size // 16) // 4 + 1)


def _groups(this):
    """Anchors in groups of four, each group in its own cell. The second equals the first, the third is
    shifted by a quarter of its width, the fourth by half. The resulting boxes overlap by clearly more or
    less than any usual threshold, whatever the rounding of an exponential."""
    if not 4 <= this.size <= _MOST:
        return boxes(0, 1000)
    columns, sides = _columns(this), (16, 24, 32, 0.5)
    groups = -(-this.size // 16)
    rows = -(-groups // columns)
    tops = [row * _CELL + 4.0 for row in range(rows)]
    top, bottom = array("d"), array("d")
    for y in tops:
        top += array("d", [y]) * columns
        bottom += array("d", [y + side for side in sides]) * (columns // 4)
    values = array("d", bytes(128 * groups))
    for n, share in enumerate((0, 0, 0.25, 0.5)):
        row = [column * _CELL + 4.0 + sides[column % 4] * share for column in range(columns)]
        end = [x + sides[column % 4] for column, x in enumerate(row)]
        for place, edge in enumerate((array("d", row) * rows, top, array("d", end) * rows, bottom)):
            values[4 * n + place :: 16] = edge[:groups]
    return Literal(values[: this.size // 4 * 4])


def _image(anchors, this):
    """Images without the last column of cells."""
    columns = _columns(anchors)
    return Literal([(columns + 9) * _CELL, max(1, columns - 1) * _CELL] * (this.size // 2))


@api(
    "paddle.vision.ops.generate_proposals",
    scores=distinct(0.01, 0.99),
    img_size=_image,
    anchors=_groups,
    variances=positive(0.005, 0.02),
    grad=COUNTS,
    known_deviation=follows(
        "boxes smaller than one pixel are removed, however small `min_size` is",
        "paddle-generate-proposals-min-size",
    ),
)
def generate_proposals(
    scores, bbox_deltas, img_size, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000,
    nms_thresh=0.5, min_size=0.1, eta=1.0, pixel_offset=False, return_rois_num=False, name=None,
):  # fmt: skip
    """Best scores first; one zero box stands for no box."""
    if not return_rois_num or len({each.dtype for each in (scores, bbox_deltas, anchors, variances)}) > 1:
        raise ValueError("return_rois_num must be True, and all dtypes must be the same")
    offset = 1.0 if pixel_offset else 0.0
    rois, probabilities = [scores.new_zeros(0, 4)], [scores.new_zeros(0, 1)]
    for image in range(len(scores)):
        score, delta, size = scores[image].permute(1, 2, 0).flatten(), bbox_deltas[image], img_size[image]
        order = score.argsort(descending=True)[: pre_nms_top_n if pre_nms_top_n > 0 else None]
        score = score[order]
        delta = delta.permute(1, 2, 0).reshape(-1, 4)[order] * variances.reshape(-1, 4)[order]
        centre, extent = _centred(anchors.reshape(-1, 4)[order], offset)
        box = _cornered(
            delta[:, :2] * extent + centre, delta[:, 2:].clamp(max=4.135166556742356).exp() * extent, offset
        )
        box = torch.minimum(box, size.flip(0).repeat(2) - offset).clamp(min=0)
        centre, extent = _centred(box, offset)
        large = (extent >= max(min_size, 1.0)).all(1)
        if pixel_offset:
            large &= (centre <= size.flip(0)).all(1)
        box, score = box[large], score[large]
        if not len(box):
            box, score = box.new_zeros(1, 4), score.new_zeros(1)
        elif nms_thresh > 0:
            kept = _survivors(box, nms_thresh, offset, post_nms_top_n if post_nms_top_n > 0 else None, eta)
            box, score = box[kept], score[kept]
        rois.append(box.to(scores.dtype))
        probabilities.append(score[:, None])
    counts = torch.tensor([len(box) for box in rois[1:]], dtype=torch.int32)
    return torch.cat(rois), torch.cat(probabilities), counts


def _of_all_levels(min_level, max_level, refer_level, refer_scale, this):
    """Boxes of every level and beyond, none near the size at which the next level starts."""
    if this.size > _MOST or this.size % 4:
        return boxes(0, 1000)
    values = []
    for n in range(this.size // 4):
        level = min_level - 1 + n * 5 % (max_level - min_level + 3)
        side = refer_scale * 2.0 ** (level - refer_level) * (1.25, 1.5, 1.75)[n % 3]
        x, y = n * 37 % 500, n * 71 % 300
        values += [x, y, x + side * 1.125, y + side / 1.125]
    return Literal(values)


@api(
    "paddle.vision.ops.distribute_fpn_proposals",
    fpn_rois=_of_all_levels,
    rois_num=lambda fpn_rois, this: lengths(fpn_rois.shape[0], this),
    grad=COUNTS,
    equal="bits",
)
def distribute_fpn_proposals(
    fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset=False, rois_num=None, name=None
):
    extent = fpn_rois[:, 2:] - fpn_rois[:, :2]
    area = torch.where((extent < 0).any(1), 0, (extent + (1 if pixel_offset else 0)).prod(1))
    level = torch.floor(torch.log2(area.sqrt() / refer_scale + 1e-6) + refer_level)
    level = level.clamp(min_level, max_level)
    image = torch.repeat_interleave(torch.arange(len(rois_num)), rois_num.long())
    if len(image) != len(fpn_rois):
        raise ValueError(f"rois_num counts {len(image)} boxes, but there are {len(fpn_rois)}")
    members = [torch.nonzero(level == each).flatten() for each in range(min_level, max_level + 1)]
    restore = torch.cat(members).argsort().to(torch.int32)[:, None]
    counts = [torch.bincount(image[each], minlength=len(rois_num)).to(torch.int32) for each in members]
    return [fpn_rois[each] for each in members], restore, counts


@api(
    "paddle.vision.ops.nms",
    boxes=lambda this: whole_boxes(64, 64, this),
    scores=distinct(0.01, 0.99),
    category_idxs=integers(0, lambda categories: len(categories)),
    grad=COUNTS,
)
def nms(boxes, iou_threshold=0.3, scores=None, category_idxs=None, categories=None, top_k=None):
    """Categories are independent: their boxes are moved far apart."""
    if scores is None:
        return _survivors(boxes, iou_threshold)
    order = scores.argsort(descending=True)
    if category_idxs is not None:
        order = order[torch.isin(category_idxs[order], torch.tensor(categories))]
        boxes = boxes + (category_idxs * (boxes.max() + 1))[:, None]
    return order[_survivors(boxes[order], iou_threshold)][:top_k]


def off_thresholds(this):
    """Distinct scores that are not thresholds of few digits, so that rounding does not decide."""
    if not 0 < this.size <= _LISTED:
        return distinct(0.001, 0.999)
    step = 7919 if this.size % 7919 else 7907
    return Literal([0.0007 + 0.9974 * (n * step % this.size) / this.size for n in range(this.size)])


@api(
    "paddle.vision.ops.matrix_nms",
    bboxes=lambda this: whole_boxes(64, 64, this),
    scores=off_thresholds,
    grad=COUNTS,
    known_deviation=follows("returns (out, rois_num, index)", "paddle-matrix-nms-order"),
)
def matrix_nms(
    bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian=False,
    gaussian_sigma=2.0, background_label=0, normalized=True, return_index=False, return_rois_num=True,
    name=None,
):  # fmt: skip
    """A score decays with the overlap with each better box, less so if that box is itself overlapped."""
    offset = 0.0 if normalized else 1.0
    found, indices, counts = [], [], []
    for image, (box, score) in enumerate(zip(bboxes, scores, strict=True)):
        rows = []
        for label, own in enumerate(score):
            order = own.argsort(descending=True)
            order = order[own[order] > score_threshold][: nms_top_k if nms_top_k > -1 else None]
            if label == background_label or not len(order):
                continue
            overlap = _overlaps(box[order], box[order], offset).tril(-1)
            most = overlap.amax(1).double()
            overlap = overlap.double()
            if use_gaussian:
                decay = torch.exp((most**2 - overlap**2) * gaussian_sigma)
            else:
                decay = (1 - overlap) / (1 - most)
            decay = torch.where(torch.ones_like(decay).tril(-1) > 0, decay, 1).amin(1).clamp(max=1)
            decayed = decay.to(own.dtype) * own[order]
            some = decayed > post_threshold
            rows += [
                (value, label, at)
                for value, at in zip(decayed[some].tolist(), order[some].tolist(), strict=True)
            ]
        rows.sort(key=lambda row: -row[0])
        rows = rows[: keep_top_k if keep_top_k > -1 else None]
        places = [at for _, _, at in rows]
        labelled = box.new_tensor([[label, value] for value, label, _ in rows]).reshape(-1, 2)
        found.append(torch.cat((labelled, box[places]), 1))
        indices += [[image * len(box) + at] for at in places]
        counts.append(len(rows))
    result = torch.cat(found) if found else bboxes.new_zeros(0, 6)
    index = torch.tensor(indices, dtype=torch.int32).reshape(-1, 1) if return_index else None
    return result, torch.tensor(counts, dtype=torch.int32) if return_rois_num else None, index
