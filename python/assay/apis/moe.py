"""Mixtures of experts: tokens to their experts and back, the loss that balances experts, and their counts.

Most of these kernels exist on GPUs only. The references follow the documentation, the operators' unit tests
and Paddle's own definitions of them in Python, and are tested on a CPU: tests/real/kernel_checks.py.
"""

from assay.apis.float8 import FUSED, quantised
from assay.arguments import as_ints, widened
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, constant, distinct, integers, positive
from assay.shorthand import OTHER_OPERATOR, QUANTIZED

NN = "paddle.nn.functional."


def _routes(tokens_per_expert, rows, slots):
    """The experts of each row, so that each expert has its number of tokens; -1 for none."""
    route = [[] for _ in range(rows)]
    place = 0
    for expert, count in enumerate(tokens_per_expert):
        for _ in range(count):
            route[place % rows].append(expert)
            place += 1
    if any(len(row) > slots for row in route):
        raise ValueError(f"{rows} rows of {slots} experts cannot have {place} tokens")
    return [expert for row in route for expert in row + [-1] * (slots - len(row))]


def _without_empty(found, given):
    """The results without those that have no elements: tokens that are not gathered, and missing scales."""
    tokens, rows, prob, scales, *experts = found
    tokens = tokens if given.get("do_gather", True) else None
    return tokens, rows, prob, None if given["scale"] is None else scales, *experts


@api(
    f"{NN}moe_permute",
    grad=OTHER_OPERATOR,
    shown=_without_empty,
    scale=positive(0.01, 1),
    expert_routemap_topk=lambda tokens_per_expert, this: Literal(_routes(tokens_per_expert, *this.shape)),
    expert_prob_topk=positive(0.05, 1),
)
def moe_permute(
    hidden_states, scale, expert_routemap_topk, expert_prob_topk, num_experts, tokens_per_expert,
    padding_alignment, do_gather=True, using_ue8m0_scale=False, return_expert_indices=False,
    override_buffer_size=-1, name=None,
):  # fmt: skip
    """The tokens of each expert in their order, padded with zeros to a multiple of the alignment."""
    counts = as_ints(tokens_per_expert)
    padded = [-(-count // padding_alignment) * padding_alignment for count in counts]
    size = sum(padded) if override_buffer_size < 0 else override_buffer_size
    rows = torch.full((len(hidden_states), num_experts), -1, dtype=torch.int32)
    tokens, experts = torch.full((2, size), -1)
    prob, start = expert_prob_topk.new_zeros(size), 0
    for expert in range(num_experts):
        row, slot = (expert_routemap_topk == expert).nonzero(as_tuple=True)
        places = torch.arange(start, start + len(row))
        rows[row, expert] = places.int()
        tokens[places], experts[places] = row, expert
        prob[places] = expert_prob_topk[row, slot]
        start += padded[expert]
    gathered = _gathered(hidden_states, tokens) if do_gather else None
    scales = None if scale is None else _gathered(scale, tokens)
    found = gathered, rows, prob, scales
    return (*found, experts.int()) if return_expert_indices else found


def _gathered(values, rows):
    """These rows; zeros for -1. Float8 has no indexing, but its bytes have."""
    narrow = values.element_size() == 1
    source = values.view(torch.uint8) if narrow else values
    found = torch.where(rows[:, None] < 0, 0, source[rows.clamp(min=0)]).to(source.dtype)
    return found.view(values.dtype) if narrow else found


def _places(zipped_expertwise_rowmap, expert_routemap_topk, hidden_states_unzipped):
    """As many places of each row as it has experts, in the order of experts, while there are places."""
    rows, experts = zipped_expertwise_rowmap.shape
    slots, left, place = min(expert_routemap_topk.shape[1], experts), hidden_states_unzipped.shape[0], 0
    chosen = [sorted({(row + slot) % experts for slot in range(slots)}) for row in range(rows)]
    found = [dict() for _ in range(rows)]
    for expert in range(experts):
        for row in range(rows):
            if expert in chosen[row] and place < left:
                found[row][expert], place = place, place + 1
    return found, experts, expert_routemap_topk.shape[1]


def _rowmap(zipped_expertwise_rowmap, expert_routemap_topk, hidden_states_unzipped):
    found, experts, _ = _places(zipped_expertwise_rowmap, expert_routemap_topk, hidden_states_unzipped)
    return Literal([row.get(expert, -1) for row in found for expert in range(experts)])


def _routemap(zipped_expertwise_rowmap, expert_routemap_topk, hidden_states_unzipped):
    found, _, slots = _places(zipped_expertwise_rowmap, expert_routemap_topk, hidden_states_unzipped)
    return Literal([expert for row in found for expert in [*row, *[-1] * (slots - len(row))]])


@api(
    f"{NN}moe_unpermute",
    grad=OTHER_OPERATOR,
    zipped_expertwise_rowmap=_rowmap,
    expert_routemap_topk=_routemap,
    token_prob_unzipped=positive(0.05, 1),
)
def moe_unpermute(
    hidden_states_unzipped, zipped_expertwise_rowmap, expert_routemap_topk, token_prob_unzipped,
    total_zipped_tokens, num_experts, using_mix_precision=True, using_weighted_combine=False, name=None,
):  # fmt: skip
    """The sum of each token's rows, and their probabilities by slot."""
    places, prob = zipped_expertwise_rowmap.long(), token_prob_unzipped.reshape(-1)
    wide = widened(hidden_states_unzipped)
    weighted = wide * prob[:, None].to(wide.dtype) if using_weighted_combine else wide
    total = wide.new_zeros(total_zipped_tokens, wide.shape[1])
    for expert in range(num_experts):
        row = (places[:, expert] >= 0).nonzero()[:, 0]
        total[row] += weighted[places[row, expert]]
    chosen = expert_routemap_topk.long()
    slots = places.gather(1, chosen.clamp(min=0))
    known = (chosen >= 0) & (slots >= 0)
    found = torch.where(known, prob[slots.clamp(min=0)], 0)
    return total.to(hidden_states_unzipped.dtype), found


def _dispatched(x, scores, bias, k, capacity, use_pad):
    """The k best experts of each row by score and bias, and the place of each choice in the experts' buffers.

    With use_pad all first choices come before second ones, and each expert has `capacity` places. A choice
    beyond the capacity is dropped: its place and weight are 0."""
    experts = scores.shape[1]
    chosen = (scores if bias is None else scores + bias).topk(k, 1).indices
    weights = scores.gather(1, chosen)
    rank = torch.arange(k).expand_as(chosen) if use_pad else torch.zeros_like(chosen)
    order = torch.argsort((chosen * (k + 1) + rank).flatten(), stable=True)
    expert = chosen.flatten()[order]
    offsets = torch.bincount(expert, minlength=experts).cumsum(0)
    starts = offsets - torch.bincount(expert, minlength=experts)
    within = torch.arange(len(order)) - starts[expert]
    kept = within < capacity
    place = expert * capacity + within if use_pad else torch.arange(len(order))
    row, slot = order // k, order % k
    scatter = torch.zeros(k, len(x), dtype=torch.int64)
    scatter[slot[kept], row[kept]] = place[kept]
    mask = torch.zeros_like(weights)
    mask[row[kept], slot[kept]] = 1
    size = experts * capacity if use_pad else len(order)
    y = x.new_zeros(size, x.shape[1]).index_copy(0, place[kept], x[row[kept]])
    return y, weights * mask, scatter.int(), offsets, chosen.int()


_SCORES = {"gate_logits": distinct(0.05, 1), "corr_bias": distinct(0, 0.5)}


@api(f"{FUSED}moe_gate_dispatch", **_SCORES)
def moe_gate_dispatch(x, gate_logits, corr_bias, k, capacity, use_pad, name=None):
    return _dispatched(x, gate_logits, corr_bias, k, capacity, use_pad)


@api(f"{FUSED}moe_gate_dispatch_permute", **_SCORES)
def moe_gate_dispatch_permute(x, gate_logits, corr_bias, k, capacity, world_size, name=None):
    """The buffers of the ranks' first experts come first: [experts of a rank, ranks * capacity, width]."""
    y, *others = _dispatched(x, gate_logits, corr_bias, k, capacity, True)
    return y.unflatten(0, (world_size, -1, capacity)).transpose(0, 1).flatten(1, 2), *others


@api(f"{FUSED}moe_gate_dispatch_and_quant", grad=QUANTIZED, **_SCORES)
def moe_gate_dispatch_and_quant(x, gate_logits, corr_bias, k, capacity, use_pad, use_pow2_scale):
    y, *others = _dispatched(x, gate_logits, corr_bias, k, capacity, use_pad)
    return *quantised(y, power_of_two=use_pow2_scale), *others


@api(
    f"{FUSED}cal_aux_loss",
    gate_prob=positive(0.05, 1),
    dispatch_mask=positive(1, 9),
    tokens_mask=constant(1),
    dispatch_tokens_mask=constant(1),
)
def cal_aux_loss(
    gate_prob, dispatch_mask, tokens_mask, dispatch_tokens_mask, num_experts, use_group, moe_k, clip_min,
    name=None,
):  # fmt: skip
    """The loss that balances the experts, the number of tokens, and each expert's share of them."""
    dtype, factor = gate_prob.dtype, None
    if dispatch_tokens_mask is not None:
        tokens = dispatch_tokens_mask.to(dtype).sum()
        if tokens_mask is not None and len(gate_prob) != len(dispatch_tokens_mask):
            factor = tokens / tokens_mask.to(dtype).sum().clamp(min=clip_min)
    elif tokens_mask is not None:
        tokens = tokens_mask.to(dtype).sum()
    else:
        tokens = torch.tensor(gate_prob.numel() / num_experts, dtype=dtype)
    tokens = tokens.clamp(min=clip_min)
    counts = dispatch_mask.sum(0) if dispatch_mask.ndim == 2 else dispatch_mask
    share = counts.to(dtype).detach() / tokens
    loss = (gate_prob.sum(0) / tokens * share).sum() * num_experts
    loss = loss / moe_k if use_group else loss
    return loss if factor is None else loss + (factor - 1) * loss.detach(), tokens, share


@api(f"{FUSED}build_src_rank_and_local_expert_id", grad=OTHER_OPERATOR)
def build_src_rank_and_local_expert_id(
    expert_num_global_tensor, expert_num_global, num_local_experts, name=None
):
    """The rank and the expert of each token, if expert i has that many tokens. The numbers are a list too,
    and the list decides."""
    counts = torch.tensor(as_ints(expert_num_global))
    expert = torch.arange(len(counts)).repeat_interleave(counts)
    return (expert // num_local_experts).int(), (expert % num_local_experts).int()


@api(
    f"{FUSED}expand_modality_expert_id",
    grad=OTHER_OPERATOR,
    expert_id=lambda group_size, is_group_expert: integers(0, group_size if is_group_expert else 12),
)
def expand_modality_expert_id(
    expert_id, num_expert_per_modality, group_size, modality_offset, is_group_expert, name=None
):
    """The number of an expert among those of all modalities. Slots count from 0 in each group."""
    if is_group_expert:
        expert_id = expert_id + torch.arange(expert_id.shape[-1]).to(expert_id.dtype) * group_size
    rank, within = expert_id // num_expert_per_modality, expert_id % num_expert_per_modality
    return rank * (2 * num_expert_per_modality) + within + modality_offset * num_expert_per_modality


@api(
    f"{FUSED}cross_entropy_with_softmax_bwd_w_downcast",
    grad=OTHER_OPERATOR,
    label=integers(0, lambda softmax: softmax.shape[-1]),
    softmax=positive(0.01, 1),
)
def cross_entropy_with_softmax_bwd_w_downcast(label, softmax, loss_grad, name=None):
    """The gradient of the logits, in bfloat16. Labels of -100 are ignored."""
    label, upstream = label.long().reshape(-1), loss_grad.reshape(-1, 1)
    rows = softmax.flatten(0, -2)
    right = torch.nn.functional.one_hot(label.clamp(min=0), rows.shape[1])
    found = (rows - right.to(rows.dtype)) * upstream.to(rows.dtype)
    return found.masked_fill((label == -100)[:, None], 0).reshape(softmax.shape).to(torch.bfloat16)


@api(
    f"{FUSED}embedding_grad_add_to_",
    grad=OTHER_OPERATOR,
    changes="main_grad_",
    token_indices=integers(0, lambda main_grad_: main_grad_.shape[0]),
)
def embedding_grad_add_to_(token_indices, main_grad_, out_grad, name=None):
    rows = out_grad.reshape(-1, main_grad_.shape[1]).to(main_grad_.dtype)
    return main_grad_.index_add(0, token_indices.reshape(-1).long(), rows)
