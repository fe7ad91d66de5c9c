"""The reference of the example's operator."""

from assay.operators import CUSTOM
from assay.reference import torch
from assay.registry import api


@api(f"{CUSTOM}.scaled_relu")
def scaled_relu(x, factor):
    return torch.relu(x) * factor
