"""What `assay capture` costs: steps of training with and without it, by turns.

    python3 bench/capture/overhead.py ASSAY PYTHON [transformer|resnet]

Prints the median seconds of the processor for a step in each way and its ratio to the plain program; fails if
a loss differs by a bit. PYTHON has PyTorch.
"""

import os
import statistics
import subprocess
import sys
import tempfile

TURNS, STEPS = 3, 6
PROGRAM = """
import sys, time
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.down = None
        if stride != 1 or inner != outer:
            self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))

def resnet18():
    widths = [64, 64, 128, 256, 512]
    blocks = []
    for inner, outer in zip(widths, widths[1:]):
        blocks += [Block(inner, outer, 1 if inner == outer else 2), Block(outer, outer, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, *head), torch.randn(4, 3, 96, 96)

def transformer():
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Linear(512, 10)), torch.randn(2, 64, 512)

torch.manual_seed(0)
torch.set_num_threads(1)
net, x = {"resnet": resnet18, "transformer": transformer}[sys.argv[1]]()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
times = []
for _ in range(int(sys.argv[2]) + 2):
    start = time.process_time()
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.process_time() - start)
print(" ".join(f"{each:.6f}" for each in times[2:]), loss.item().hex())
"""


def run(command: list[str], folder: str) -> tuple[list[float], str]:
    """Seconds of each step, and the loss."""
    printed = subprocess.run(
        command,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    *times, loss = printed.stdout.split()
    return [float(each) for each in times], loss


def main(assay: str, python: str, models: list[str]) -> int:
    """Measures each model. Returns the exit code."""
    failed = 0
    for model in models or ["transformer", "resnet"]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            plain = [python, "program.py", model, str(STEPS)]
            ways = {
                "plain": plain,
                "calls": [assay, "capture", "--out=a.txt", "--", *plain],
                "summaries": [assay, "capture", "--out=b.txt", "--summaries", "--", *plain],
                "idle": [assay, "capture", "--out=c.txt", "--steps=1", "--", *plain],
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            losses = set()
            for _ in range(TURNS):
                for way, command in ways.items():
                    found, loss = run(command, folder)
                    times[way] += found
                    losses.add(loss)
        base = statistics.median(times["plain"])
        for way, found in times.items():
            middle = statistics.median(found)
            print(f"{model:12} {way:10} {middle:.4f} s a step, {middle / base:.3f} times; {len(losses)} loss")
        failed |= len(losses) != 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]))
