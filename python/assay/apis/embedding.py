"""Embedding tables."""

from assay.apis.loss import functional
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, integers
from assay.shorthand import OUTSIDE_GRAPH


def _rows(weight, this, padding_idx=None):
    """Every third index is `padding_idx`."""
    rows = weight.shape[0]
    if padding_idx is None or not rows or this.size > 1 << 16:
        return integers(0, rows)
    return Literal([(padding_idx + n % 3 * n) % rows for n in range(this.size)])


@api(
    "paddle.nn.functional.embedding",
    x=_rows,
    updates=lambda max_norm=None: ("weight",) if max_norm else (),
)
def embedding(
    x, weight, padding_idx=None, max_norm=None, norm_type=2.0, sparse=False, scale_grad_by_freq=False,
    name=None,
):  # fmt: skip
    """A row at `padding_idx` reads as zeros. Rows that are read and longer than `max_norm` are shortened, in
    place."""
    rows = x.long()
    if max_norm:
        with torch.no_grad():
            used = rows.unique()
            norm = torch.linalg.vector_norm(weight[used], norm_type, 1, keepdim=True)
            weight[used] = weight[used] * torch.where(norm > max_norm, max_norm / (norm + 1e-7), 1)
    if scale_grad_by_freq:
        result = functional.embedding(rows, weight, scale_grad_by_freq=True)
    else:  # PyTorch's embedding has no gradient for complex tables
        result = weight.index_select(0, rows.reshape(-1)).reshape(*rows.shape, weight.shape[1])
    if padding_idx is None:
        return result
    if not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ValueError(f"padding_idx {padding_idx} is out of range for {weight.shape[0]} rows")
    return torch.where((rows == padding_idx % weight.shape[0]).unsqueeze(-1), 0, result)


@api("paddle.nn.utils.parameters_to_vector")
def parameters_to_vector(parameters, name=None):
    return torch.cat([each.reshape(-1) for each in parameters])


@api("paddle.nn.utils.vector_to_parameters", changes="parameters", grad=OUTSIDE_GRAPH)
def vector_to_parameters(vec, parameters, name=None):
    """The vector may be longer than all parameters."""
    sizes = [each.numel() for each in parameters]
    pieces = torch.split(vec[: sum(sizes)], sizes)
    return [piece.reshape(each.shape) for piece, each in zip(pieces, parameters, strict=True)]
