"""Two runs, compared by what left their modules: `assay capture --deep`, `assay blame --deep`."""

import json
import subprocess

from capture.programs import ASSAY, MODEL, capture


def blame(folder, *files):
    command = [ASSAY, "blame", "--deep", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_first_module_that_differs_is_named(tmp_path):
    assert capture(tmp_path, MODEL, "2", flags=["--deep=old.deep"]).returncode == 0
    program = MODEL.replace("net = Net()", "net = Net()\nnet.head.register_buffer('step', torch.zeros(1))")
    program = program.replace("    loss = ", "    net.head.step += 1\n    loss = ")
    program = program.replace(
        "return self.head(self.encoder(self.embedding(x)))",
        "x = self.encoder(self.embedding(x)) * (1.01 if self.head.step > 1 else 1)\n"
        "        return self.head(x)",
    )
    done = capture(tmp_path, program, "2", flags=["--deep=new.deep"])
    assert done.returncode == 0, done.stderr
    found = blame(tmp_path, "new.deep", "old.deep")
    assert found.returncode == 1, found.stdout + found.stderr
    count, first, far = found.stdout.splitlines()
    assert "boundaries differ; 0 are in one run only" in count
    assert first.startswith("first: step 2, head 0: [") and "before it agree bit for bit" in first
    assert far.startswith("first beyond rounding (0.001): step 2, head 0: [")
    assert blame(tmp_path, "old.deep", "old.deep").returncode == 0


def test_a_later_boundary_may_agree_again(tmp_path):
    rows = [[1, "a 0", 7, 0.0, 1.0, 2.0], [1, "b 0", 8, 0.0, 2.0, 2.0], [1, "c 0", 9, 0.0, 3.0, 2.0]]
    other = [rows[0], [1, "b 0", 5, 0.0, float("nan"), 2.0], rows[2], [2, "a 0", 1, 0.0, 1.0, 1.0]]
    for name, each in (("new", rows), ("old", other)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in each))
    count, first, far = blame(tmp_path, "new", "old").stdout.splitlines()
    assert count == "1 of 3 boundaries differ; 1 are in one run only"
    assert (
        first
        == "first: step 1, b 0: [0, 2], [0, nan] in the other run; 1 before it agree bit for bit, 1 after it"
    )
    assert "step 1, b 0" in far


def test_wrong_files(tmp_path):
    (tmp_path / "damaged").write_text("{")
    for files in (["none", "none"], ["damaged", "damaged"], ["one"]):
        done = blame(tmp_path, *files)
        assert done.returncode == 2 and "error: " in done.stderr, files


ROWS = """
import sys
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
x = torch.arange(8.0).reshape(2, 4)
for step in range(2):
    try:
        net(x[0, :2])
    except RuntimeError:
        pass
    for each in (x.to_sparse(), x.to(torch.float8_e5m2), x > 1, torch.nested.nested_tensor([x]), x + 0j):
        torch.nn.Identity()(each)
    net(x.flip(0) if step and sys.argv[1:] else x).sum().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
"""


def test_other_data_are_told_from_a_wrong_module(tmp_path):
    """The rows of the second batch change places. The sum of their bits does not."""
    assert capture(tmp_path, ROWS, flags=["--deep=old.deep"]).returncode == 0
    assert capture(tmp_path, ROWS, "other", flags=["--deep=new.deep"]).returncode == 0
    first = blame(tmp_path, "new.deep", "old.deep").stdout.splitlines()[1]
    assert first.startswith("first: step 2, Linear input 0, call 2: [0, 7]"), first
