"""Losses of sequences and tree paths, and beam search."""

import math

from assay.apis.loss import functional, reduced
from assay.known_deviation import follows
from assay.reference import torch
from assay.registry import api
from assay.rules import constant, integers
from assay.shorthand import COUNTS


def _steps(log_probs):
    """The shortest input; a label of half its length always fits."""
    return (log_probs.shape[0] + 1) // 2


@api(
    "paddle.nn.functional.ctc_loss",
    labels=lambda log_probs, blank=0: integers(0, blank) if blank else integers(1, log_probs.shape[2]),
    input_lengths=integers(_steps, lambda log_probs: log_probs.shape[0] + 1),
    label_lengths=integers(
        1, lambda log_probs, labels: 1 + max(1, min(labels.shape[1], (_steps(log_probs) + 1) // 2))
    ),
    traits={"chained": True},
)
def ctc_loss(
    log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False,
    zero_infinity=False,
):  # fmt: skip
    """Paddle takes raw scores. Its mean is over the losses divided by the label lengths."""
    lengths = input_lengths.long(), label_lengths.long()
    loss = functional.ctc_loss(
        torch.log_softmax(log_probs, 2),
        labels.long(),
        *lengths,
        blank,
        reduction="none",
        zero_infinity=zero_infinity,
    )
    if norm_by_times:
        loss = loss.detach() + (loss - loss.detach()) / lengths[0]
    return reduced(loss / lengths[1] if reduction == "mean" else loss, reduction)


@api(
    "paddle.nn.functional.rnnt_loss",
    label=integers(1, lambda input: input.shape[3]),
    input_lengths=constant(lambda input: input.shape[1]),
    label_lengths=constant(lambda input: input.shape[2] - 1),
    # One term for each position of the path, then the losses of the batch.
    traits={"chained": True, "terms": lambda input: sum(input.shape[:3])},
)
def rnnt_loss(
    input, label, input_lengths, label_lengths, blank=0, fastemit_lambda=0.001, reduction="mean", name=None
):
    """Forward probabilities of the transducer's lattice, one time step after another. The input is documented
    to be log probabilities, so it is not normalised."""
    if fastemit_lambda:
        raise NotImplementedError("the reference of rnnt_loss has no FastEmit")
    stay = input[..., blank]
    emit = input[:, :, :-1].gather(-1, label.long()[:, None, :, None].expand(-1, input.shape[1], -1, -1))
    emit = emit.squeeze(-1)
    losses = []
    for b, (steps, length) in enumerate(zip(input_lengths.tolist(), label_lengths.tolist(), strict=True)):
        alpha = [input.new_zeros(())] + [None] * length  # nothing is emitted before the first step
        for t in range(steps):
            for u in range(length + 1):
                come = [alpha[u] + stay[b, t - 1, u]] if t else alpha[:1] if not u else []
                come += [alpha[u - 1] + emit[b, t, u - 1]] if u else []
                alpha[u] = torch.logsumexp(torch.stack(come), 0)
        losses.append(-alpha[length] - stay[b, steps - 1, length])
    return reduced(torch.stack(losses), reduction)


@api(
    "paddle.nn.functional.hsigmoid_loss",
    label=integers(0, lambda num_classes: num_classes),
    path_table=integers(0, lambda weight: weight.shape[0]),
    path_code=integers(0, 2),
    known_deviation=follows("scores are clipped to [-40, 40]"),
)
def hsigmoid_loss(
    input, label, num_classes, weight, bias=None, path_table=None, path_code=None, is_sparse=False, name=None
):
    """Along the path to the class: inner nodes from 1 on in heap order, leaves num_classes + label."""
    if path_table is None:
        leaf = label.reshape(-1, 1) + num_classes
        bits = torch.arange(math.floor(math.log2(2 * num_classes - 1)), device=label.device)
        path_table = (leaf >> (bits + 1)) - 1
        path_code = (leaf >> bits) & 1
    used = path_table >= 0
    nodes = torch.where(used, path_table, 0).long()
    scores = (weight[nodes] * input.unsqueeze(1)).sum(-1)
    if bias is not None:
        scores = scores + bias.reshape(-1)[nodes]
    losses = -functional.logsigmoid(-scores.clamp(-40, 40)) - path_code * scores
    return torch.where(used, losses, 0).sum(1, keepdim=True)


@api("paddle.nn.functional.gather_tree", parents=integers(0, lambda ids: ids.shape[2]))
def gather_tree(ids, parents):
    """The sequences of a beam search, followed back from the last step: [time, batch, beam]."""
    if ids.ndim != 3 or ids.shape != parents.shape:
        raise ValueError(
            f"ids {tuple(ids.shape)} and parents {tuple(parents.shape)} must have the same 3 axes"
        )
    steps = []
    beam = torch.arange(ids.shape[2], device=ids.device).expand(ids.shape[1:])
    for step, parent in zip(reversed(ids), reversed(parents.long()), strict=True):
        steps.append(step.gather(1, beam))
        beam = parent.gather(1, beam)
    return torch.stack(steps[::-1]) if steps else ids


@api(
    "paddle.text.viterbi_decode", grad=COUNTS, lengths=lambda potentials: integers(1, potentials.shape[1] + 1)
)
def viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag=True, name=None):
    """The best path. The last tag but one starts and the last one stops. Positions after the end of a
    sequence are 0; paths are as long as the longest sequence."""
    batch, _, tags = potentials.shape
    begin = transition_params[-2] if include_bos_eos_tag else potentials.new_zeros(tags)
    end = transition_params[:, -1] if include_bos_eos_tag else potentials.new_zeros(tags)
    longest = int(lengths.max())
    scores, paths = [], torch.zeros(batch, longest, dtype=torch.int64)
    if include_bos_eos_tag:
        begin, end = transition_params[-1], transition_params[-2]
    for row in range(batch):
        count = int(lengths[row])
        score, back = potentials[row, 0] + begin, []
        for step in range(1, count):
            best, place = (score.unsqueeze(1) + transition_params).max(0)
            score = best + potentials[row, step]
            back.append(place)
        score, tag = (score + end).max(0)
        scores.append(score)
        for step in range(count - 1, -1, -1):
            paths[row, step] = tag
            tag = back[step - 1][tag] if step else tag
    return torch.stack(scores), paths
