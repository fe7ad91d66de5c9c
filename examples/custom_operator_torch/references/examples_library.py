"""The references of operators.py: plain functions, which run in float64 too."""

from assay.reference import torch
from assay.registry import api
from assay.rules import integers


@api("torch.ops.examples.scaled_relu", "torch.ops.examples.wrong_scaled_relu", traits={"without": {}})
def scaled_relu(x, factor):
    return torch.clamp_min(x, 0) * factor


# The operator has no gradient; an index is a row of the table.
@api(
    "torch.ops.examples.pick_rows",
    grad="the operator has none",
    index=integers(0, lambda table: table.shape[0]),
    equal="bits",
)
def pick_rows(table, index):
    return torch.index_select(table, 0, index)
