"""Losses between predictions and targets of the same shape, and between embeddings."""

import math

from assay.known_deviation import avoids, follows
from assay.reference import torch
from assay.registry import api
from assay.rules import integers, positive, uniform
from assay.shorthand import FACTORS, cycled

PROBABILITY = uniform(0.05, 0.95)
SHARE = uniform(0, 1)
WEIGHT = positive(0.5, 1.5)
SIGN = integers(-1, 2)  # -1 and 1 are labels; see NO_LOSS

functional = torch and torch.nn.functional

# Only the reduction sums, and no result has the absolute precision of 1.
BY_ELEMENT = {"sums": False, "near_one": 0.0}

NOT_BY_LABEL = follows("no gradient with respect to the label")
NO_LOSS = follows("a label of 0, which is undocumented, contributes no loss")


def reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction in ("none", None):
        return loss
    raise ValueError(f"unknown reduction {reduction}")


@api("paddle.nn.functional.square_error_cost", input=FACTORS, label=FACTORS, traits=BY_ELEMENT)
def square_error_cost(input, label):
    return torch.square(input - label)


@api("paddle.nn.functional.mse_loss", input=FACTORS, label=FACTORS, traits=BY_ELEMENT)
def mse_loss(input, label, reduction="mean", name=None):
    return reduced(torch.square(input - label), reduction)


@api("paddle.nn.functional.l1_loss", input=FACTORS, label=FACTORS, traits=BY_ELEMENT)
def l1_loss(input, label, reduction="mean", name=None):
    return reduced(torch.abs(input - label), reduction)


@api("paddle.nn.functional.smooth_l1_loss", input=FACTORS, label=FACTORS, traits=BY_ELEMENT)
def smooth_l1_loss(input, label, reduction="mean", delta=1.0, is_huber=True, name=None):
    error = torch.abs(input - label)
    loss = torch.where(error <= delta, 0.5 * error * error, delta * (error - 0.5 * delta))
    return reduced(loss if is_huber else loss / delta, reduction)


@api(
    "paddle.nn.functional.binary_cross_entropy",
    input=PROBABILITY,
    label=SHARE,
    weight=WEIGHT,
    known_deviation=NOT_BY_LABEL,
    traits={"sums": False},
    undefined={
        "nan": "PyTorch refuses input or label outside [0, 1], on a GPU with an assertion that ends the lane"
    },
)
def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    loss = functional.binary_cross_entropy(input, label.detach(), reduction="none")
    return reduced(loss if weight is None else loss * weight, reduction)


def _logits(this):
    """Integers for small tensors. Large tensors avoid 0, where a known bug would be found only by chance."""
    return integers(-4, 5) if this.size <= 1000 else uniform(-2 + 2**-25, 2)


@api(
    "paddle.nn.functional.binary_cross_entropy_with_logits",
    logit=_logits,
    label=SHARE,
    weight=WEIGHT,
    pos_weight=WEIGHT,
    known_deviation=(
        follows("no gradient with respect to `label` and `pos_weight`"),
        avoids(
            "large tensors contain no logit of exactly 0, where the gradient is too small by 1",
            "paddle-bce-with-logits-gradient-zero",
        ),
    ),
)
def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None):
    pos_weight = None if pos_weight is None else pos_weight.detach()
    loss = functional.binary_cross_entropy_with_logits(
        logit, label.detach(), pos_weight=pos_weight, reduction="none"
    )
    return reduced(loss if weight is None else loss * weight, reduction)


@api(
    "paddle.nn.functional.sigmoid_focal_loss",
    logit=FACTORS,
    label=SHARE,
    normalizer=positive(1, 2),
    known_deviation=follows("the gradient with respect to the label omits the cross-entropy term"),
    traits={"sums": False, "near_one_back": 8.0},  # powers times logarithms
)
def sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None):
    loss = functional.binary_cross_entropy_with_logits(logit, label.detach(), reduction="none")
    p = torch.sigmoid(logit)
    missed = 1 - (p * label + (1 - p) * (1 - label))
    loss = (alpha * label + (1 - alpha) * (1 - label)) * missed**gamma * loss
    return reduced(loss if normalizer is None else loss / normalizer, reduction)


@api(
    "paddle.nn.functional.log_loss",
    input=PROBABILITY,
    label=SHARE,
    known_deviation=NOT_BY_LABEL,
    traits={"sums": False},
)
def log_loss(input, label, epsilon=0.0001, name=None):
    label = label.detach()
    return -label * torch.log(input + epsilon) - (1 - label) * torch.log(1 - input + epsilon)


@api(
    "paddle.nn.functional.kl_div",
    input=uniform(-3, 0),
    label=lambda log_target=False: uniform(-2, 0) if log_target else SHARE,
    regimes={"exact": {"label": lambda log_target=False: None if log_target else cycled([0.0, 0.5, 1.0])}},
    known_deviation=NOT_BY_LABEL,
    traits=BY_ELEMENT | {"near_one": 0.5, "near_one_back": 1.0},  # log(label) - input cancels
)
def kl_div(input, label, reduction="mean", log_target=False, name=None):
    label = label.detach()
    loss = functional.kl_div(input, label, reduction="none", log_target=log_target)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss
    return reduced(loss, reduction)


@api(
    "paddle.nn.functional.gaussian_nll_loss",
    input=FACTORS,
    label=FACTORS,
    variance=positive(),
    traits=BY_ELEMENT,
)
def gaussian_nll_loss(input, label, variance, full=False, epsilon=1e-6, reduction="mean", name=None):
    if variance.shape != input.shape and variance.shape == input.shape[:-1]:
        variance = variance.unsqueeze(-1)
    elif variance.shape not in (input.shape, (*input.shape[:-1], 1)):
        raise ValueError("the shape of variance does not match the input")
    variance = variance + (variance.clamp(min=epsilon) - variance).detach()
    loss = 0.5 * (torch.log(variance) + torch.square(input - label) / variance)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@api(
    "paddle.nn.functional.poisson_nll_loss",
    input=lambda log_input=True: None if log_input else positive(),
    label=uniform(0.1, 3),
    traits=BY_ELEMENT | {"near_one": 8.0},  # terms of up to 8 cancel
)
def poisson_nll_loss(input, label, log_input=True, full=False, epsilon=1e-8, reduction="mean", name=None):
    loss = torch.exp(input) - label * input
    if not log_input:
        loss = input - label * torch.log(input + epsilon)
    if full:
        stirling = label * torch.log(label) - label + 0.5 * torch.log(2 * math.pi * label)
        loss = loss + torch.where(label > 1, stirling, 0)
    return reduced(loss, reduction)


@api("paddle.nn.functional.soft_margin_loss", input=FACTORS, label=SIGN, traits={"sums": False})
def soft_margin_loss(input, label, reduction="mean", name=None):
    return reduced(-functional.logsigmoid(label.to(input.dtype) * input), reduction)  # softplus has a knee


@api("paddle.nn.functional.hinge_embedding_loss", input=FACTORS, label=SIGN, known_deviation=NO_LOSS)
def hinge_embedding_loss(input, label, margin=1.0, reduction="mean", name=None):
    loss = torch.where(label == 1, input, 0) + torch.where(label == -1, torch.relu(margin - input), 0)
    return reduced(loss, reduction)


@api(
    "paddle.nn.functional.margin_ranking_loss",
    input=FACTORS,
    other=FACTORS,
    label=SIGN,
    undefined={"nan": "the documentation does not say whether a maximum over NaN is NaN"},
)
def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    return reduced(torch.relu((other - input) * label + margin), reduction)


@api(
    "paddle.nn.functional.cosine_embedding_loss",
    label=SIGN,
    known_deviation=(
        NO_LOSS,
        follows("1e-11 is added to each squared norm; PyTorch adds 1e-12"),
        follows("the margin is subtracted from the cosine", "paddle-cosine-embedding-loss-margin"),
    ),
)
def cosine_embedding_loss(input1, input2, label, margin=0, reduction="mean", name=None):
    squares = (torch.square(input1).sum(-1) + 1e-11) * (torch.square(input2).sum(-1) + 1e-11)
    cosine = (input1 * input2).sum(-1) / torch.sqrt(squares)
    loss = torch.where(label == 1, 1 - cosine, 0) + torch.where(label == -1, torch.relu(cosine - margin), 0)
    return reduced(loss, reduction)


@api("paddle.nn.functional.triplet_margin_loss")
def triplet_margin_loss(
    input, positive, negative, margin=1.0, p=2, epsilon=1e-6, swap=False, reduction="mean", name=None
):
    def distance(a, b):
        return functional.pairwise_distance(a, b, p, epsilon)

    return triplet_margin_with_distance_loss(input, positive, negative, distance, margin, swap, reduction)


@api(
    "paddle.nn.functional.triplet_margin_with_distance_loss",
    undefined={"nan": "Paddle rejects distances that are not positive"},
)
def triplet_margin_with_distance_loss(
    input, positive, negative, distance_function=None, margin=1.0, swap=False, reduction="mean", name=None
):
    distance = distance_function or functional.pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    return reduced(torch.relu(near - far + margin), reduction)


@api("paddle.nn.functional.npair_loss", anchor=FACTORS, positive=FACTORS, labels=integers(0, 3))
def npair_loss(anchor, positive, labels, l2_reg=0.002):
    labels = labels.reshape(-1, 1)
    same = (labels == labels.T).float()
    same = same / same.sum(1, keepdim=True)
    length = torch.square(anchor).sum(1).mean() + torch.square(positive).sum(1).mean()
    entropy = -(same * torch.log_softmax(anchor @ positive.T, -1)).sum(1, keepdim=True)
    return 0.25 * l2_reg * length + (same * entropy).sum(0).mean()


@api("paddle.nn.functional.multi_label_soft_margin_loss", input=FACTORS, label=integers(0, 2), weight=WEIGHT)
def multi_label_soft_margin_loss(input, label, weight=None, reduction="mean", name=None):
    loss = -label * functional.logsigmoid(input) - (1 - label) * functional.logsigmoid(-input)
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


@api("paddle.incubate.identity_loss", x=uniform(-0.5, 1.5))
def identity_loss(x, reduction="none"):
    if reduction in ("mean", 1):
        return x.mean()
    return x.sum() if reduction in ("sum", 0) else x
