"""A training loop of a small GPT, timed; what recording it costs is the difference of two such runs.

Prints a JSON line for each shape (batch x length): large kernels that keep the GPU busy, and small
ones that the CPU cannot launch fast enough.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.environ.get("ASSAY_PYTHON", os.path.join(os.path.dirname(__file__), "../../../python")))
import torch
from assay.timeline import job, start, step
from torch import nn


def build(width, layers):
    block = dict(d_model=width, nhead=width // 64, dim_feedforward=4 * width, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**block, norm_first=True), layers, enable_nested_tensor=False
    )
    return nn.Sequential(encoder, nn.Linear(width, 1024)).cuda().bfloat16()


def train(model, optimizer, batch, targets, steps):
    seconds = []
    for number in range(steps):
        begin = time.perf_counter()
        step(number)
        with job("forward", micro_batch=0):
            loss = nn.functional.cross_entropy(model(batch).flatten(0, 1).float(), targets)
        with job("backward", micro_batch=0):
            loss.backward()
        with job("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--shapes", nargs="+", default=["16x512", "1x256"])
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = build(options.width, options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for shape in options.shapes:
        size, length = map(int, shape.split("x"))
        batch = torch.randn(size, length, options.width, device="cuda", dtype=torch.bfloat16)
        targets = torch.randint(0, 1024, (size * length,), device="cuda")
        train(model, optimizer, batch, targets, 10)
        start()  # where recording was started paused
        seconds = train(model, optimizer, batch, targets, options.steps)
        print(json.dumps({"shape": shape, "recorded": "ASSAY_RECORD_DIR" in os.environ, "seconds": seconds}))


if __name__ == "__main__":
    main()
