"""What `assay timeline record --watch` costs: steps of a transformer with and without it, by turns.

    python3 bench/timeline/watch_overhead.py ASSAY PYTHON [--device cuda] [--turns 5] [--steps 60]

Prints the time of the processor for a step and its change. Then the same for steps of one product, which
show the microseconds that are too few to be seen in the transformer. PYTHON has PyTorch.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time
import torch
from torch import nn

device, model, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(0)
torch.set_num_threads(1)
if model == "transformer":
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
    net, x = nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Linear(512, 10)), torch.randn(2, 64, 512)
else:
    net, x = nn.Linear(1, 1), torch.randn(1, 1)
net, x = net.to(device), x.to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

def train(steps):
    for _ in range(steps):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train(steps // 4)
wall, cpu = time.perf_counter(), time.process_time()
train(steps)
print((time.process_time() - cpu) / steps, (time.perf_counter() - wall) / steps)
"""


def main() -> int:
    """Measures both models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("assay", type=os.path.abspath)
    parser.add_argument("python", type=os.path.abspath)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for model, steps in (("transformer", options.steps), ("one product", 200 * options.steps)):
        with tempfile.TemporaryDirectory() as folder:
            plain = [options.python, "-c", PROGRAM, options.device, model, str(steps)]
            watch = [options.assay, "timeline", "record", "--watch", "--out", f"{folder}/out", "--", *plain]
            cpu: dict[str, list[float]] = {"plain": [], "watch": []}
            wall: dict[str, list[float]] = {"plain": [], "watch": []}
            for turn in range(options.turns):
                ways = {"plain": plain, "watch": watch}
                for way in sorted(ways, reverse=turn % 2 == 1):
                    ran = subprocess.run(
                        ways[way], check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
                        stderr=subprocess.DEVNULL,
                    )  # fmt: skip
                    of_cpu, of_wall = map(float, ran.stdout.split())
                    cpu[way].append(of_cpu)
                    wall[way].append(of_wall)
            size = sum(file.stat().st_size for file in Path(folder, "out").iterdir())
        middle = {way: statistics.median(times) for way, times in cpu.items()}
        least = {way: min(times) for way, times in cpu.items()}
        print(
            f"{model} on {options.device}: {middle['plain'] * 1e6:.1f} us of the processor a step, "
            f"{(middle['watch'] - middle['plain']) * 1e6:+.1f} with the recording "
            f"({middle['watch'] / middle['plain'] - 1:+.2%}; of the least times "
            f"{least['watch'] / least['plain'] - 1:+.2%}; of the times by the clock "
            f"{statistics.median(wall['watch']) / statistics.median(wall['plain']) - 1:+.2%}); {size} bytes"
        )
        print(f"  plain {sorted(round(each * 1e6, 1) for each in cpu['plain'])}")
        print(f"  watch {sorted(round(each * 1e6, 1) for each in cpu['watch'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
