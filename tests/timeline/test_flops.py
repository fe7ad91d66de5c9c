"""FLOPs from a trace's shapes are those that PyTorch counts while the same model runs."""

import json
import pathlib
import subprocess

import pytest
from tree import ASSAY, ROOT

PYTHON = ROOT / ".venv" / "torch" / "bin" / "python"

# Convolutions (strided, dilated, transposed), linear layers, products of batches; forward and backward.
MODEL = """
import sys
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
layers = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
    torch.nn.Conv2d(8, 6, 3, dilation=2),
    torch.nn.ConvTranspose2d(6, 4, 2, stride=2),
    torch.nn.Flatten(2),
    torch.nn.Linear(144, 32),
    torch.nn.Linear(32, 48, bias=False),
)

def run(images):
    q, k, v = layers(images).unsqueeze(1).chunk(3, dim=-1)
    scores = torch.matmul(q, k.transpose(-2, -1)).softmax(-1)
    torch.baddbmm(v.flatten(0, 1), scores.flatten(0, 1), v.flatten(0, 1)).square().sum().backward()

images = torch.randn(2, 3, 20, 20, requires_grad=True)
with FlopCounterMode(display=False) as counter:
    run(images)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
    run(images)
recorded.export_chrome_trace(sys.argv[1])
print(counter.get_total_flops())
"""


def test_flops_are_those_of_the_flop_counter(tmp_path: pathlib.Path) -> None:
    for needed in (ASSAY, PYTHON):
        if not needed.exists():
            pytest.skip(f"{needed} is missing")
    trace = tmp_path / "rank0.json"
    model = subprocess.run([PYTHON, "-c", MODEL, trace], capture_output=True, text=True, check=True)
    analysed = subprocess.run(
        [ASSAY, "timeline", "analyze", trace, "--format", "json"], capture_output=True, text=True, check=True
    )
    flops = json.loads(analysed.stdout)["flops"]
    assert sum(row["calls"] * row["flop_per_call"] for row in flops["operators"]) == int(model.stdout)
    assert flops["calls_without_shapes"] == 0
