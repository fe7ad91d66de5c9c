"""Messages along the edges of a graph, and sums over segments."""

from assay import draw_distribution
from assay.arguments import as_int, widened
from assay.known_deviation import avoids
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, constant, distinct, increasing, integers, literal, positive
from assay.shorthand import COUNTS, RANDOM

_MOST = 400_000  # the largest number of values that a rule lists


def _source(x, this):
    """Nodes in turn, so that with `_target` no edge is duplicated and no maximum is a tie."""
    count = x.shape[0]
    if this.size > _MOST or not count:
        return integers(0, count)
    return Literal([i % count for i in range(this.size)])


def _target(x, out_size=None, *, this):
    count = x.shape[0]
    rows = out_size if isinstance(out_size, int) and out_size > 0 else count
    if this.size > _MOST or not count:
        return integers(0, rows)
    return Literal([(3 * i + i // count) % rows for i in range(this.size)])


def _apart(this):
    return distinct(-1, 2) if "float" in this.dtype else integers(0, 50)


_EDGES = {"src_index": _source, "dst_index": _target, "out_size": constant(lambda x: max(1, x.shape[0]))}
ONE_EDGE = avoids(
    "no edge is duplicated; a maximum would propagate its gradient twice", "paddle-send-u-recv-double-edge"
)
_TIED = "the documentation does not say which of several equal messages gets the gradient"


def _picks(reduce_op="sum", pool_type="sum"):
    """Whether the reduction selects one message instead of summing."""
    return reduce_op in ("max", "min") or pool_type in ("max", "min")


_LARGEST = {
    "traits": {
        "terms": lambda reduce_op="sum", pool_type="sum": 1.0 if _picks(reduce_op, pool_type) else None
    },
    "undefined": {
        "exact": lambda reduce_op="sum", pool_type="sum": _TIED if _picks(reduce_op, pool_type) else ""
    },
}
_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}
_MESSAGES = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
}


def _gathered(messages, rows, count, reduce_op):
    """Messages reduced by row; rows without messages are 0. They become 0 only at the end, because PyTorch
    shares a maximum's gradient with equal initial values."""
    wide, rows = widened(messages), rows.long()
    index = rows.reshape(-1, *[1] * (wide.ndim - 1)).expand_as(wide)
    result = wide.new_full((count, *wide.shape[1:]), torch.nan if wide.is_floating_point() else 0)
    result = result.scatter_reduce(0, index, wide, _REDUCTIONS[reduce_op], include_self=False)
    alone = torch.ones(count, dtype=torch.bool).index_fill(0, rows, False)
    return result.masked_fill(alone.reshape(-1, *[1] * (wide.ndim - 1)), 0).to(messages.dtype)


def _rows(out_size, x):
    size = 0 if out_size is None else as_int(out_size)
    return size if size > 0 else x.shape[0]


def _alike(x, y):
    """Both tensors with the same number of axes, at least two; missing axes are inserted after the first."""
    rank = max(x.ndim, y.ndim, 2)
    x, y = (each.unsqueeze(-1) if each.ndim == 1 else each for each in (x, y))
    return (each.reshape(each.shape[0], *[1] * (rank - each.ndim), *each.shape[1:]) for each in (x, y))


@api("paddle.geometric.send_u_recv", x=_apart, known_deviation=ONE_EDGE, **_LARGEST, **_EDGES)
def send_u_recv(x, src_index, dst_index, reduce_op="sum", out_size=None, name=None):
    return _gathered(x[src_index.long()], dst_index, _rows(out_size, x), reduce_op)


@api("paddle.incubate.graph_send_recv", x=_apart, known_deviation=ONE_EDGE, **_LARGEST, **_EDGES)
def graph_send_recv(x, src_index, dst_index, pool_type="sum", out_size=None, name=None):
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


@api("paddle.geometric.send_ue_recv", y=positive(0.5, 1.5), known_deviation=ONE_EDGE, **_LARGEST, **_EDGES)
def send_ue_recv(x, y, src_index, dst_index, message_op="add", reduce_op="sum", out_size=None, name=None):
    x, y = _alike(x, y)
    messages = _MESSAGES[message_op](x[src_index.long()], y)
    return _gathered(messages, dst_index, _rows(out_size, x), reduce_op)


@api(
    "paddle.geometric.send_uv",
    y=positive(0.5, 1.5),
    src_index=integers(0, lambda x: x.shape[0]),
    dst_index=integers(0, lambda y: y.shape[0]),
)
def send_uv(x, y, src_index, dst_index, message_op="add", name=None):
    x, y = _alike(x, y)
    return _MESSAGES[message_op](x[src_index.long()], y[dst_index.long()])


def _segments(stem):
    @api(
        f"paddle.geometric.segment_{stem}",
        f"paddle.incubate.segment_{stem}",
        data=_apart,
        segment_ids=increasing(0, lambda data: max(1, data.shape[0] // 2)),
        traits={"terms": 1.0} if _picks(stem) else {},
        undefined={"exact": _TIED} if _picks(stem) else {},
    )
    def pool(data, segment_ids, name=None):
        return _gathered(data, segment_ids, int(segment_ids[-1]) + 1, stem)

    return pool


for _stem in _REDUCTIONS:
    _segments(_stem)


_NODES = lambda colptr: max(1, colptr.size - 1)  # noqa: E731
_GRAPH = {
    "row": integers(0, _NODES),
    # All nodes have the same number of edges, up to one.
    "colptr": lambda row, this: Literal([row.size * i // max(1, this.size - 1) for i in range(this.size)]),
    "input_nodes": distinct(0, _NODES),
}
_BUFFER = {"perm_buffer": lambda this: distinct(0, this.size)}


@api(
    "paddle.incubate.graph_sample_neighbors",
    grad=RANDOM,
    signature="row, colptr, input_nodes, eids=None, perm_buffer=None, sample_size=-1, return_eids=False, "
    "flag_perm_buffer=False, name=None",
    **_GRAPH,
    **_BUFFER,
)
@api(
    "paddle.geometric.weighted_sample_neighbors",
    grad=RANDOM,
    signature="row, colptr, edge_weight, input_nodes, sample_size=-1, eids=None, return_eids=False, "
    "name=None",
    **_GRAPH,
    edge_weight=positive(),
)
@api("paddle.geometric.sample_neighbors", **_GRAPH, **_BUFFER)
def sample_neighbors(
    row, colptr, input_nodes, sample_size=-1, eids=None, return_eids=False, perm_buffer=None, name=None
):
    """All neighbours of a node, or a random (weighted) choice if there are more than requested."""
    begin, end = (colptr.flatten()[input_nodes.flatten() + step].tolist() for step in (0, 1))
    edges = [torch.arange(a, b) for a, b in zip(begin, end, strict=True)]
    if 0 <= sample_size < max((len(each) for each in edges), default=0):
        edges = [each[:sample_size] for each in edges]
        chosen = draw_distribution.anything((sum(len(each) for each in edges),), row.dtype)
        neighbours, identities = chosen, chosen
    else:
        chosen = torch.cat(edges)
        neighbours = row.flatten()[chosen]
        identities = eids.flatten()[chosen] if return_eids else None
    counts = torch.tensor([len(each) for each in edges], dtype=torch.int32)
    return (neighbours, counts, identities) if return_eids else (neighbours, counts)


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
