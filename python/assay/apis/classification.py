"""Losses between scores and class labels, and functions of labels."""

import math

from assay.apis.loss import NOT_BY_LABEL, functional, reduced
from assay.arguments import as_dtype, as_int, widened
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, constant, distinct, integers, literal, positive, uniform
from assay.shorthand import COUNTS


def classes(axis=-1):
    """Labels for the scores `input`, along `axis`."""
    return integers(0, lambda input, axis=axis: input.shape[axis])


@literal
def _shares(this, axis=-1):
    """The same distribution over the classes in every row: k % 7 + 1, normalised."""
    extent = this.shape[axis]
    inner = math.prod(this.shape[axis % this.ndim + 1 :])
    weights = [k % 7 + 1 for k in range(extent)]
    row = [weight / sum(weights) for weight in weights for _ in range(inner)]
    return row * (this.size // max(1, len(row)))


def shares(this, axis=-1):
    """Soft labels. Paddle's gradient assumes that they add up to one."""
    if this.size <= 65536:
        return _shares
    extent = this.shape[axis]
    # In half precision 1 / extent is always rounded in the same direction; random shares are rounded in both.
    rounded = extent > 4096 and this.dtype in ("float16", "bfloat16")
    return uniform(0, 2 / extent) if rounded else constant(1 / extent)


def labels(this, input, axis=-1):
    return classes() if "int" in this.dtype else shares


def some_ignored(extent, ignore_index, this):
    """Labels of which every third is `ignore_index`."""
    if "int" not in this.dtype or this.size > 4096 or extent < 1:
        return labels
    return Literal([ignore_index if k % 3 == 1 else k * 7 % extent for k in range(this.size)])


def _some(this, logits=None, input=None, axis=-1, ignore_index=-100):
    return some_ignored((input if logits is None else logits).shape[axis], ignore_index, this)


IGNORING = {"exact": {"label": _some}}  # under these values some labels are ignored


def entropy(log_p, label, soft_label, ignore_index, axis):
    """Cross entropy with its class axis kept. The label has the rank of the scores and no gradient."""
    label = label.detach()
    expected = list(log_p.shape)
    expected[axis] = expected[axis] if soft_label else 1
    if list(label.shape) != expected:
        raise ValueError(
            f"labels of shape {tuple(label.shape)} do not match scores of shape {tuple(log_p.shape)}"
        )
    if soft_label:
        return -(log_p * label.to(log_p.dtype)).sum(axis, keepdim=True)
    ignored = label == ignore_index
    picked = log_p.gather(axis, torch.where(ignored, 0, label).long())
    return torch.where(ignored, 0, -picked)


NOT_BY_SOFTMAX = follows("the returned softmax has no gradient")


@api(
    "paddle.nn.functional.softmax_with_cross_entropy",
    label=lambda this, logits, axis=-1: integers(0, logits.shape[axis]) if "int" in this.dtype else shares,
    regimes=IGNORING,
    known_deviation=(NOT_BY_LABEL, NOT_BY_SOFTMAX),
)
def softmax_with_cross_entropy(
    logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False,
    axis=-1,
):  # fmt: skip
    if label.ndim != logits.ndim:
        label = label.reshape(label.shape[0], logits.shape[1])
    log_p = torch.log_softmax(widened(logits), axis)
    loss = entropy(log_p, label, soft_label, ignore_index, axis).to(logits.dtype)
    return (loss, log_p.exp().detach().to(logits.dtype)) if return_softmax else loss


@api(
    "paddle.nn.functional.cross_entropy",
    input=lambda use_softmax=True: None if use_softmax else uniform(0.05, 1),
    label=labels,
    weight=positive(),
    regimes=IGNORING,
    known_deviation=NOT_BY_LABEL,
)
def cross_entropy(
    input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
    use_softmax=True, label_smoothing=0.0, name=None,
):  # fmt: skip
    if soft_label and ignore_index > 0:
        raise ValueError("ignore_index is not supported with soft labels")
    flat = label.ndim == input.ndim - 1
    if flat:
        label = label.unsqueeze(axis)
    if label_smoothing > 0:
        extent = input.shape[-1]
        if flat:
            label = label.squeeze(axis).long()
            # PyTorch checks them on a CPU; on a GPU they would corrupt the context.
            if bool(((label < 0) | (label >= extent)).any()):
                raise ValueError("a label is not a class")
            label = functional.one_hot(label, extent)
        label = (1 - label_smoothing) * label.to(widened(input).dtype) + label_smoothing / extent
        soft_label, flat = True, False
    dtype, input = input.dtype, widened(input)
    log_p = torch.log_softmax(input, axis) if use_softmax else torch.log(input)
    loss = entropy(log_p, label, soft_label, ignore_index, axis)
    kept = None if soft_label else label != ignore_index
    if weight is not None:
        if soft_label:
            weight = (label.to(weight.dtype) @ weight).reshape(loss.shape)
        else:
            weight = weight[torch.where(kept, label, 0).long()] * kept
        loss = loss * weight
    if reduction == "mean" and (weight is not None or kept is not None):
        total = kept.sum() if weight is None else weight.sum()
        return (loss.sum() / torch.where(total == 0, 1, total)).to(dtype)
    return reduced(loss.squeeze(axis) if flat else loss, reduction).to(dtype)


@api(
    "paddle.nn.functional.nll_loss",
    input=uniform(-3, 0),
    label=classes(1),
    weight=positive(),
    regimes={
        "exact": {
            "label": lambda this, input, ignore_index=-100: some_ignored(input.shape[1], ignore_index, this)
        }
    },
    known_deviation=follows("no gradient with respect to the class weights"),
    # The weights of all labels are added up, and every gradient is divided by that.
    traits={
        "terms_back": lambda label, weight=None, reduction="mean": (
            None if weight is None or reduction != "mean" else label.size
        )
    },
)
def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    weight = None if weight is None else weight.detach()
    return functional.nll_loss(input, label.long(), weight, ignore_index=ignore_index, reduction=reduction)


@api("paddle.nn.functional.dice_loss", input=uniform(0, 1), label=classes())
def dice_loss(input, label, epsilon=0.00001, name=None):
    label = functional.one_hot(label.squeeze(-1).long(), input.shape[-1])
    axes = tuple(range(1, input.ndim))
    shared = (input * label).sum(axes)
    return (1 - 2 * shared / (input.sum(axes) + label.sum(axes) + epsilon)).mean()


@api("paddle.nn.functional.multi_margin_loss", label=classes(1), weight=positive())
def multi_margin_loss(input, label, p=1, margin=1.0, weight=None, reduction="mean", name=None):
    if weight is not None and weight.shape != input.shape[1:]:
        raise ValueError("weight must have one element for each class")
    label = label.reshape(-1, 1).long()
    loss = torch.relu(margin - input.gather(1, label) + input) ** p
    loss = loss.scatter(1, label, 0)
    return reduced((loss if weight is None else loss * weight[label]).mean(1), reduction)


@api("paddle.nn.functional.multi_label_margin_loss", label=classes(1))
def multi_label_margin_loss(input, label, reduction="mean", name=None):
    return functional.multilabel_margin_loss(input, label.long(), reduction=reduction)


@api(
    "paddle.nn.functional.margin_cross_entropy",
    logits=uniform(-0.9, 0.9),
    label=integers(0, lambda logits: logits.shape[-1]),
    known_deviation=NOT_BY_SOFTMAX,
)
def margin_cross_entropy(
    logits, label, margin1=1.0, margin2=0.5, margin3=0.0, scale=64.0, group=None, return_softmax=False,
    reduction="mean",
):  # fmt: skip
    """The score of the label's class is a cosine; it becomes cos(margin1 * angle + margin2) - margin3."""
    label = label.reshape(*logits.shape[:-1], 1).long()
    wide = widened(logits)
    angle = torch.acos(wide.gather(-1, label))
    scores = wide.scatter(-1, label, torch.cos(margin1 * angle + margin2) - margin3)
    log_p = torch.log_softmax(scale * scores, -1)
    loss = reduced(-log_p.gather(-1, label), reduction).to(logits.dtype)
    return (loss, log_p.exp().detach().to(logits.dtype)) if return_softmax else loss


@api(
    "paddle.nn.functional.label_smooth",
    label=uniform(0, 1),
    prior_dist=uniform(0, 1),
    known_deviation=follows("no gradient with respect to `prior_dist`"),
)
def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    if not 0 <= epsilon <= 1:
        raise ValueError("epsilon must be between 0 and 1")
    prior = 1 / max(1, label.shape[-1]) if prior_dist is None else prior_dist.detach()
    return (1 - epsilon) * label + epsilon * prior


@api("paddle.nn.functional.adaptive_log_softmax_with_loss", label=integers(0, lambda cutoffs: cutoffs[-1]))
def adaptive_log_softmax_with_loss(
    input, label, head_weight, tail_weights, cutoffs, head_bias=None, name=None
):
    rows, classes = input.reshape(-1, input.shape[-1]), label.reshape(-1).long()
    head = rows @ head_weight
    head = torch.log_softmax(head if head_bias is None else head + head_bias, 1)
    output = torch.zeros_like(head[:, 0])
    for k, (first, last) in enumerate(zip([0, *cutoffs], cutoffs, strict=False)):
        inside = (classes >= first) & (classes < last)
        local = (classes - first).clamp(0, last - first - 1).unsqueeze(1)
        if k == 0:
            score = head.gather(1, local).squeeze(1)
        else:
            tail = torch.log_softmax(rows @ tail_weights[k - 1][0] @ tail_weights[k - 1][1], 1)
            score = head[:, cutoffs[0] + k - 1] + tail.gather(1, local).squeeze(1)
        output = torch.where(inside, score, output)
    return output.reshape(label.shape), -output.mean()


def _wanted(value, other):
    """A positive number that the case states, or `other`."""
    return value if isinstance(value, int) and value > 0 else other


@api(
    "paddle.nn.functional.one_hot",
    cost="product",
    x=integers(0, lambda num_classes=-1: _wanted(num_classes, 5)),
    num_classes=constant(6),
)
def one_hot(x, num_classes=-1, name=None):
    extent = as_int(num_classes)
    extent = int(x.max()) + 1 if extent == -1 else extent
    zeros = torch.zeros(*x.shape, extent, device=x.device)
    return zeros.scatter_(-1, x.unsqueeze(-1).long(), 1)


@api(
    "paddle.nn.functional.sequence_mask",
    x=integers(0, lambda maxlen=None: _wanted(maxlen, 8) + 2),
    maxlen=integers(5, 11),
)
def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    extent = -1 if maxlen is None else as_int(maxlen)
    extent = int(x.max()) if extent < 0 and x.numel() else max(0, extent)
    return (torch.arange(extent, device=x.device) < x.detach().unsqueeze(-1)).to(as_dtype(dtype))


@api(
    "paddle.nn.functional.class_center_sample",
    equal=("value", "shape"),
    label=integers(0, lambda num_classes: num_classes),
)
def class_center_sample(label, num_classes, num_samples, group=None):
    """The present classes come first and in order; only the absent classes are random."""
    if num_samples > num_classes:
        raise ValueError("num_samples exceeds num_classes")
    present, remapped = torch.unique(label, return_inverse=True)
    drawn = present.new_zeros(max(0, num_samples - len(present)))
    return remapped.to(label.dtype), torch.cat([present, drawn])


@api(
    "paddle.metric.accuracy",
    input=lambda this: distinct(0, 1),
    label=integers(0, lambda input: input.shape[-1]),
    grad=COUNTS,
)
def accuracy(input, label, k=1, correct=None, total=None, name=None):
    best = torch.topk(input, k, -1).indices
    return (best == label.reshape(-1, 1)).any(-1).float().mean()
