"""Tensors from data, and APIs without a family of their own."""

from assay import laws
from assay.apis.dropout import together
from assay.apis.graph import sample_neighbors
from assay.arguments import as_dtype
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, distinct, integers, literal, positive, uniform
from assay.shorthand import COUNTS, RANDOM


def _made(data, dtype):
    """A tensor of numbers (float32, int64 or complex64 by default), or a copy of a tensor."""
    if isinstance(data, torch.Tensor):
        return data.detach().to(as_dtype(dtype) or data.dtype)
    if isinstance(data, list | tuple) and data and isinstance(data[0], torch.Tensor):
        return torch.stack(data).detach().to(as_dtype(dtype) or data[0].dtype)
    return torch.tensor(data, dtype=as_dtype(dtype))


api("paddle.to_tensor", signature="data, dtype=None, place=None, stop_gradient=True")(_made)
api("paddle.as_tensor", signature="data, dtype=None, device=None, requires_grad=False, pin_memory=False")(
    _made
)


@api("paddle.asarray")
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    return _made(obj, dtype)


@api("paddle.range")
def numbers(start=0, end=None, step=1, dtype=None, *, out=None, device=None, requires_grad=False, name=None):
    """floor((end - start) / step) + 1 elements, including the last."""
    start, end = (0, start) if end is None else (start, end)
    dtype = as_dtype(dtype) or torch.float32
    count = int((end - start) / step // 1) + 1
    return (start + step * torch.arange(count, dtype=torch.float64)).to(dtype)


@api("paddle.autograd.jacobian", shown=lambda found, given: _evaluated(found))
def jacobian(ys, xs, batch_axis=None):
    """Zeros, because the tensors of a case have no common graph."""
    if isinstance(xs, list | tuple):
        return [jacobian(ys, x, batch_axis) for x in xs]
    if batch_axis is None:
        return ys.new_zeros(*ys.shape, *xs.shape)
    return ys.new_zeros(ys.shape[0], *ys.shape[1:], *xs.shape[1:])


@api("paddle.autograd.hessian", shown=lambda found, given: _evaluated(found))
def hessian(ys, xs, batch_axis=None):
    """Zeros, with one block for each pair of inputs."""
    batch = () if batch_axis is None else ys.shape[:1]
    if not isinstance(xs, list | tuple):
        return ys.new_zeros(*batch, xs.shape[-1], xs.shape[-1])
    return [[ys.new_zeros(*batch, x.shape[-1], y.shape[-1]) for y in xs] for x in xs]


def _evaluated(found):
    """The value of Paddle's lazy Jacobian."""
    if isinstance(found, list | tuple):
        return [_evaluated(part) for part in found]
    return found[:].detach()


@api("paddle.nn.functional.dropout1d")
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Whole channels are dropped."""
    if not 0 <= p <= 1 or input.ndim not in (2, 3):
        raise ValueError(f"p={p} is invalid for {input.ndim} dimensions")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    return laws.kept(input / (1 - p), 1 - p, together(input, range(input.ndim - 1)))


@api("paddle.incubate.identity_loss", x=uniform(-0.5, 1.5))
def identity_loss(x, reduction="none"):
    if reduction in ("mean", 1):
        return x.mean()
    return x.sum() if reduction in ("sum", 0) else x


@api(
    "paddle.metric.accuracy",
    input=lambda this: distinct(0, 1),
    label=integers(0, lambda input: input.shape[-1]),
    grad=COUNTS,
)
def accuracy(input, label, k=1, correct=None, total=None, name=None):
    best = torch.topk(input, k, -1).indices
    return (best == label.reshape(-1, 1)).any(-1).float().mean()


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


# -- graphs --


_REINDEX = "x, neighbors, count, value_buffer=None, index_buffer=None"
_REINDEXED = {
    "x": lambda this: Literal(range(this.size)),
    "neighbors": integers(0, lambda x: 3 * x.size),
    "count": literal(lambda this, neighbors=None: _shared(neighbors.size, this.size)),
}


def _shared(amount, among):
    """Integers that add up to `amount`."""
    return [amount * (i + 1) // among - amount * i // among for i in range(among)]


@api(
    "paddle.incubate.graph_reindex",
    grad=COUNTS,
    signature=f"{_REINDEX}, flag_buffer_hashtable=False, name=None",
    **_REINDEXED,
)
@api(
    "paddle.geometric.reindex_graph",
    grad=COUNTS,
    signature=f"{_REINDEX}, name=None",
    **_REINDEXED,
)
def reindex_graph(x, neighbors, count):
    """Numbers the nodes in the order of their first occurrence."""
    order = {node: place for place, node in enumerate(x.tolist())}
    for node in neighbors.tolist():
        order.setdefault(node, len(order))
    source = torch.tensor([order[node] for node in neighbors.tolist()], dtype=x.dtype)
    target = torch.arange(len(x), dtype=x.dtype).repeat(len(count) // max(1, len(x)))
    return source, target.repeat_interleave(count.long()), torch.tensor(list(order), dtype=x.dtype)


_HETEROGENEOUS = _REINDEXED | {
    "count": literal(
        lambda this, neighbors=None, count=None: _shared(neighbors[count.index(this)].size, this.size)
    )
}


@api("paddle.geometric.reindex_heter_graph", grad=COUNTS, **_HETEROGENEOUS)
def reindex_heter_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None):
    """The edges of several graphs, one after the other."""
    return reindex_graph(x, torch.cat(list(neighbors)), torch.cat(list(count)))


_GRAPH = {
    "row": integers(0, lambda colptr: max(1, colptr.size - 1)),
    "colptr": lambda row, this: Literal([row.size * i // (this.size - 1) for i in range(this.size)]),
    "input_nodes": distinct(0, lambda colptr: max(1, colptr.size - 1)),
    "edge_weight": positive(),
}


@api("paddle.geometric.weighted_sample_neighbors", grad=RANDOM, rules=_GRAPH)
def weighted_sample_neighbors(
    row, colptr, edge_weight, input_nodes, sample_size=-1, eids=None, return_eids=False, name=None
):
    """All neighbours of a node, or a weighted random choice."""
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


@api(
    "paddle.incubate.graph_sample_neighbors",
    grad=RANDOM,
    rules={name: _GRAPH[name] for name in ("row", "colptr", "input_nodes")},
    perm_buffer=lambda this: distinct(0, this.size),
)
def graph_sample_neighbors(
    row, colptr, input_nodes, eids=None, perm_buffer=None, sample_size=-1, return_eids=False,
    flag_perm_buffer=False, name=None,
):  # fmt: skip
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)
