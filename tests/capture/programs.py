"""Programs for tests of `assay capture`, and how they are run."""

import json
import os
import subprocess

import pytest
from tree import ASSAY, ROOT

TORCH = ROOT / ".venv" / "torch" / "bin" / "python"
PADDLE = ROOT / ".venv" / "paddle" / "bin" / "python"

MODEL = """
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 100)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x)))

torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    x = torch.randint(0, 100, (4, 10))
    loss = nn.functional.cross_entropy(net(x).flatten(0, 1), x.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), flush=True)
"""


def needed(python=TORCH):
    """Skips the test if assay or the framework is not there."""
    for each in (ASSAY, python):
        if not each.exists():
            pytest.skip(f"{each} is not there: make build")


def capture(folder, program, *words, flags=(), python=TORCH, **variables):
    """Runs a program, given as text, under capture. Returns the finished process."""
    needed(python)
    (folder / "program.py").write_text(program)
    command = [ASSAY, "capture", "--out=corpus.txt", *flags, "--", python, "program.py", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )


def calls(folder):
    """The head of the corpus and the notes by case."""
    head, cases, text = {}, {}, ""
    for line in (folder / "corpus.txt").read_text().splitlines():
        if line.startswith("# assay capture 1 "):
            head = json.loads(line.removeprefix("# assay capture 1 "))
        elif line.startswith("#: "):
            cases[text] = json.loads(line.removeprefix("#: "))
        else:
            text = line
    return head, cases


def with_api(cases, api):
    """The notes of the cases of one API."""
    return {text: note for text, note in cases.items() if text.startswith(api + "(")}
