"""What `assay timeline record --watch` costs: steps with and without its hooks, by turns in one process.

    PYTHONPATH=python .venv/torch/bin/python bench/timeline/watch_overhead.py [--device cuda] [--turns 60]

Prints the time of the processor for a step of one product, in which the microseconds of the hooks show, and
of a transformer: without hooks, with hooks in a step that is not measured, and in one that is. The last lines
say what the recording costs, which measures at most five steps a second.
"""

import argparse
import os
import statistics
import tempfile
import time
from typing import Any

os.environ["ASSAY_RECORD_STAGES"] = tempfile.mkdtemp()

import torch  # noqa: E402
from assay.timeline import stages  # noqa: E402
from torch import nn  # noqa: E402
from torch.optim import optimizer as optimizers  # noqa: E402

WAYS = ("plain", "skipped", "measured")


class Hooks:
    """The hooks of the recording, which can be taken off."""

    def __init__(self) -> None:
        before = dict(optimizers._global_optimizer_post_hooks)
        plain = torch.autograd.backward
        stages.start(torch)
        self.state = {"plain": (plain, before)}
        hooked = torch.autograd.backward, dict(optimizers._global_optimizer_post_hooks)
        self.state |= {"skipped": hooked, "measured": hooked}
        self.here = stages.stages()
        self.here._pace = lambda now: None

    def choose(self, way: str) -> None:
        """From now on steps are of this way."""
        torch.autograd.backward, hooks = self.state[way]
        optimizers._global_optimizer_post_hooks.clear()
        optimizers._global_optimizer_post_hooks.update(hooks)
        self.here.every = 1 if way == "measured" else 1 << 40
        self.here.measuring = False


def measure(hooks: Hooks, net: Any, x: Any, turns: int, steps: int) -> dict[str, list[float]]:
    """Microseconds of the processor for a step, by way and turn; and by the clock, of plain steps."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def train(count: int) -> None:
        for _ in range(count):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    found: dict[str, list[float]] = {way: [] for way in (*WAYS, "clock")}
    hooks.here.leader = id(optimizer)
    for turn in range(turns):
        for way in WAYS[:: 1 if turn % 2 else -1]:
            hooks.choose(way)
            train(max(2, steps // 40))
            if x.is_cuda:
                torch.cuda.synchronize()
            clock, begin = time.perf_counter(), time.process_time()
            train(steps)
            found[way].append((time.process_time() - begin) / steps * 1e6)
            if x.is_cuda:
                torch.cuda.synchronize()
            if way == "plain":
                found["clock"].append((time.perf_counter() - clock) / steps * 1e6)
    return found


def main() -> None:
    """Measures both models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    hooks = Hooks()
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
    big = nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Linear(512, 10))
    extra: dict[str, float] = {}
    for name, net, shape, turns, steps in (
        ("one product", nn.Linear(1, 1), (1, 1), options.turns, 200),
        ("transformer", big, (2, 64, 512), max(3, options.turns // 10), 4 if options.device == "cpu" else 40),
    ):
        found = measure(
            hooks, net.to(options.device), torch.randn(shape, device=options.device), turns, steps
        )
        plain = statistics.median(found["plain"])
        for way, times in found.items():
            middle = statistics.median(times)
            print(f"{name:12} {way:9} {middle:10.1f} us a step, the least {min(times):10.1f}")
            extra.setdefault(way, middle - plain)
        every = max(1.0, 200_000 / statistics.median(found["clock"]))
        cost = extra["skipped"] * (1 - 1 / every) + extra["measured"] / every
        print(f"{name:12} with one step of {every:.0f} measured: {cost:.1f} us, {cost / plain:.3%} of a step")


if __name__ == "__main__":
    main()
