"""1F1B over NCCL: one process a GPU, stages of equal work, every job named, every step ended together.

    torchrun --nproc-per-node P pipeline.py --micro-batches M --steps N [--kineto FOLDER] [--events FILE]

`--kineto` records with PyTorch's profiler instead of assay (CUPTI has room for one); `--events` times
each job with a pair of CUDA events on the stream, which neither recorder knows of.
"""

import argparse
import contextlib
import json
import os
import sys

sys.path.insert(0, os.environ.get("ASSAY_PYTHON", os.path.join(os.path.dirname(__file__), "../../../python")))
import torch
import torch.distributed as dist
from assay.timeline import job, step
from torch import nn


class Stage:
    def __init__(self, rank, stages, options):
        self.rank, self.stages, self.options = rank, stages, options
        layers = [
            m for _ in range(options.layers) for m in (nn.Linear(options.width, options.width), nn.GELU())
        ]
        self.model = nn.Sequential(*layers).cuda().bfloat16()
        shape = (options.tokens, options.width)
        self.source = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        # A communicator for each edge and direction: those of one wait for each other.
        pairs = [(a, b) for a in range(stages) for b in (a - 1, a + 1) if 0 <= b < stages]
        self.edges = {pair: dist.new_group(sorted(pair)) for pair in pairs}
        self.shape, self.waiting, self.sent, self.events = shape, {}, [], []

    @contextlib.contextmanager
    def named(self, name, micro_batch):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if self.options.events else None
        if pair:
            pair[0].record()
        with job(name, micro_batch=micro_batch), torch.profiler.record_function(f"{name}@{micro_batch}"):
            yield
        if pair:
            pair[1].record()
            self.events.append((self.number, name, micro_batch, pair))

    def take(self, source):
        tensor = torch.empty(self.shape, device="cuda", dtype=torch.bfloat16)
        dist.irecv(
            tensor, source, group=self.edges[source, self.rank]
        ).wait()  # the stream waits, not this thread
        return tensor

    def give(self, tensor, to):
        self.sent.append((dist.isend(tensor, to, group=self.edges[self.rank, to]), tensor))

    def forward(self, micro_batch):
        first, last = self.rank == 0, self.rank == self.stages - 1
        given = self.source.clone() if first else self.take(self.rank - 1)
        given.requires_grad_()
        with self.named("forward", micro_batch):
            made = self.model(given)
        self.waiting[micro_batch] = (given, made)
        if not last:
            self.give(made.detach(), self.rank + 1)

    def backward(self, micro_batch):
        first, last = self.rank == 0, self.rank == self.stages - 1
        given, made = self.waiting.pop(micro_batch)
        gradient = torch.ones_like(made) if last else self.take(self.rank + 1)
        with self.named("backward", micro_batch):
            torch.autograd.backward(made, gradient)
        if not first:
            self.give(given.grad, self.rank - 1)

    def run(self, number):
        self.number = number
        step(number)
        count = self.options.micro_batches
        ahead = min(self.stages - self.rank - 1, count)
        for m in range(ahead):
            self.forward(m)
        for m in range(ahead, count):
            self.forward(m)
            self.backward(m - ahead)
        for m in range(count - ahead, count):
            self.backward(m)
        for work, _ in self.sent:
            work.wait()
        self.sent.clear()
        torch.cuda.synchronize()
        dist.barrier(device_ids=[torch.cuda.current_device()])
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--kineto")
    parser.add_argument("--events")
    options = parser.parse_args()
    rank, stages = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    stage = Stage(rank, stages, options)
    for number in range(3):
        stage.run(1000 + number)  # warm-up
    stage.events.clear()
    profiler = contextlib.nullcontext()
    if options.kineto:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        profiler = torch.profiler.profile(activities=activities)
    with profiler:
        for number in range(options.steps):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                stage.run(number)
    if options.kineto:
        profiler.export_chrome_trace(
            os.path.join(options.kineto, f"kineto.{stages}.{options.micro_batches}.{rank}.json")
        )
    if options.events:
        rows = [(rank, n, name, m, a.elapsed_time(b) * 1000) for n, name, m, (a, b) in stage.events]
        with open(f"{options.events}.{rank}.json", "w") as file:
            json.dump(rows, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
