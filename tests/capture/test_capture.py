"""`assay capture` writes the calls of real programs, and changes nothing that they do."""

import json
import os
import re
import signal
import subprocess

import pytest
from capture.programs import ASSAY, MODEL, TORCH, calls, capture, needed, with_api


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """A folder in which MODEL was captured, and what it printed."""
    folder = tmp_path_factory.mktemp("training")
    done = capture(folder, MODEL)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_training_is_captured_and_computes_the_same_bits(training):
    folder, printed = training
    assert printed == subprocess.check_output([TORCH, "program.py"], cwd=folder, text=True)
    head, cases = calls(folder)
    assert head["steps"] == 3 and head["framework"].startswith("torch 2.") and head["left_out"] == {}
    head_of_net = (
        'torch.nn.functional.linear(Tensor([4, 10, 32], "float32"), Tensor([100, 32], "float32"), '
        'Tensor([100], "float32"))'
    )
    linear = cases[head_of_net]
    assert linear["calls"] == 3 and linear["steps"] == 3
    lines = MODEL.splitlines()
    frames, module, count = linear["at"][0]
    assert count == 3 and module == "head"
    numbers = [
        lines.index(next(line for line in lines if each in line)) + 1 for each in ("self.head(", "net(x)")
    ]
    assert frames == [f"program.py:{number}" for number in numbers]
    norms = with_api(cases, "torch.nn.functional.layer_norm")
    assert [note["calls"] for note in norms.values()] == [12]


def test_the_same_program_gives_the_same_text(training, tmp_path):
    done = capture(tmp_path, MODEL)
    assert re.search(r"  0 of \d+ operators of a step ran outside of these calls\n", done.stderr), done.stderr
    assert (tmp_path / "corpus.txt").read_text() == (training[0] / "corpus.txt").read_text()


def test_inside_of_a_composite_function_several_calls_are_cases(training):
    _, cases = calls(training[0])
    whole = with_api(cases, "torch.nn.functional.multi_head_attention_forward")
    inside = {
        text: note for text, note in cases.items() if any("attention" in each for each in note.get("in", ()))
    }
    assert sum(note["calls"] for note in whole.values()) == 6
    attention = with_api(inside, "torch.nn.functional.scaled_dot_product_attention")
    assert [note["calls"] for note in attention.values()] == [6]
    assert [note["changed"] for note in attention.values()] == [{"dropout": 0.1}]
    assert with_api(cases, "torch.layer_norm") == {}  # layer_norm is one call


def test_each_captured_call_gets_a_verdict(training, tmp_path):
    _, cases = calls(training[0])
    corpus = training[0] / "corpus.txt"
    command = [ASSAY, "api", corpus, "--test-lane=torch", "--log_dir=run", "-n1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b{len(cases)}  pass\b", done.stdout)


def test_numbers_that_change_in_each_step_do_not_fill_the_corpus(tmp_path):
    assert capture(tmp_path, MODEL, "12").returncode == 0
    _, cases = calls(tmp_path)
    bias = 'torch.Tensor.addcdiv_(Tensor([96], "float32"), Tensor([96], "float32"), Tensor([96], "float32"), '
    found = [note["calls"] for text, note in cases.items() if text.startswith(bias)]
    assert len(found) == 3 and sum(found) == 24


def test_only_chosen_steps_are_captured(tmp_path):
    assert capture(tmp_path, MODEL, "6", flags=["--steps=2,5"]).returncode == 0
    head, cases = calls(tmp_path)
    assert head["steps"] == 6
    assert {note["steps"] for note in with_api(cases, "torch.nn.functional.linear").values()} == {2}
    assert with_api(cases, "torch.empty") == {}


def test_a_killed_program_leaves_a_readable_file(tmp_path):
    needed()
    (tmp_path / "program.py").write_text(MODEL)
    command = [ASSAY, "capture", "--out=corpus.txt", "--", TORCH, "program.py", "100000"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        for _ in range(3):
            run.stdout.readline()
        os.killpg(run.pid, signal.SIGKILL)
    parts = list(tmp_path.glob("corpus.txt.part*"))
    assert len(parts) == 1
    check = subprocess.run([ASSAY, "corpus", "check", parts[0]], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout
    with parts[0].open("a") as part:
        part.write("torch.abs(Tens")  # a line that the kill has cut
    assert subprocess.run([ASSAY, "capture", "--out=corpus.txt"], cwd=tmp_path, check=False).returncode == 0
    _, cases = calls(tmp_path)
    assert with_api(cases, "torch.nn.functional.linear") and not with_api(cases, "torch.abs")
    assert list(tmp_path.glob("corpus.txt.part*")) == []


def test_a_kill_of_the_program_alone_is_its_exit_code(tmp_path):
    done = capture(tmp_path, MODEL + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert done.returncode == 128 + signal.SIGKILL
    assert with_api(calls(tmp_path)[1], "torch.nn.functional.linear")


def test_the_exit_code_and_wrong_input(tmp_path):
    assert capture(tmp_path, "import torch, sys\ntorch.abs(torch.ones(3))\nsys.exit(7)\n").returncode == 7
    nothing = capture(tmp_path, "print('no framework')\n")
    assert nothing.returncode == 4 and "no call of PyTorch or Paddle was seen" in nothing.stderr
    for words in (
        ["--out=corpus.txt", "--steps=ten", "--", "true"],
        ["--out=corpus.txt", "--", "no-such-program"],
        ["--out=none/corpus.txt", "--", "true"],
        ["--out=no"],
    ):
        done = subprocess.run(
            [ASSAY, "capture", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "error: " in done.stderr, words


@pytest.mark.slow
def test_the_programs_own_sitecustomize_and_path_stay(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.mark = 'own'\n")
    (tmp_path / "own" / "helper.py").write_text("name = 'helper'\n")
    program = "import helper, torch\nprint(mark, helper.name)\ntorch.abs(torch.ones(3))\n"
    done = capture(tmp_path, program, PYTHONPATH=str(tmp_path / "own"))
    assert done.stdout == "own helper\n", done.stderr
    assert with_api(calls(tmp_path)[1], "torch.abs")


WORKERS = """
import threading
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full([3], float(index)).sqrt()

if __name__ == "__main__":
    for batch in DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context="METHOD"):
        batch.exp()
    thread = threading.Thread(target=lambda: torch.ones(5).tanh())
    thread.start()
    thread.join()
    with torch.inference_mode():
        torch.ones(6).cos()
"""


@pytest.mark.slow
def test_forked_and_spawned_workers_and_threads_are_captured(tmp_path):
    for method in ("fork", "spawn"):
        done = capture(tmp_path, WORKERS.replace("METHOD", method))
        assert done.returncode == 0, done.stderr
        head, cases = calls(tmp_path)
        assert head["processes"] == 3, method
        found = {text.split("(")[0].rsplit(".")[-1]: note["calls"] for text, note in cases.items()}
        assert (found["sqrt"], found["exp"], found["tanh"], found["cos"]) == (8, 4, 1, 1), method


RANKS = """
import json
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
net = DistributedDataParallel(torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
if dist.get_rank() == 1:
    torch.ones(7).sin()
del net, optimizer  # else PyTorch 2.13 aborts at times as it ends, without assay as well
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_ranks_write_apart_and_are_merged(tmp_path):
    needed()
    (tmp_path / "program.py").write_text(RANKS)
    for flags, ranks, count in ((["--ranks=0"], 1, 2), ([], 2, 4)):
        command = [ASSAY, "capture", "--out=corpus.txt", *flags, "--"]
        command += [
            TORCH,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
            "program.py",
        ]
        for _ in range(3):  # PyTorch 2.13 aborts at times as it ends
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            if "SIGABRT" not in done.stderr:
                break
        assert done.returncode == 0, done.stderr
        head, cases = calls(tmp_path)
        assert head["ranks"] == ranks
        assert [note["calls"] for note in with_api(cases, "torch.nn.functional.linear").values()] == [count]
        assert len(with_api(cases, "torch.Tensor.sin")) == ranks - 1


def test_a_compiled_model_stays_compiled(tmp_path):
    program = """
import torch
from torch._dynamo.testing import CompileCounter
counter = CompileCounter()
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
net = torch.compile(net, backend=counter, fullgraph=True)
for _ in range(3):
    net(torch.ones(2, 4)).exp()
print(counter.frame_count)
"""
    done = capture(tmp_path, program)
    assert done.stdout == "1\n", done.stderr
    _, cases = calls(tmp_path)
    assert [note["calls"] for note in with_api(cases, "torch.Tensor.exp").values()] == [3]
    inside = {text.partition("(")[0]: note for text, note in cases.items() if note.get("compiled")}
    assert set(inside) == {"torch.nn.functional.linear", "torch.nn.functional.relu"}
    assert inside["torch.nn.functional.relu"]["at"][0][0] == ["program.py:8"]


AUTOCAST = """
import torch
net, norm, x = torch.nn.Linear(8, 4), torch.nn.LayerNorm(4), torch.ones(2, 8)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = net(x)
    net(x.to(torch.bfloat16))
    torch.matmul(y, torch.ones(4, 4)) + torch.ones(4)
    norm(y)
    torch.nn.functional.mse_loss(y, y * 2)
net(x)
"""


def test_calls_under_autocast_have_the_dtype_in_which_they_computed(tmp_path):
    assert capture(tmp_path, AUTOCAST).returncode == 0
    cases = calls(tmp_path)[1]
    used = {
        name: [re.findall(r'"(\w*float\w*)"', text) for text in with_api(cases, f"torch.{name}")]
        for name in (
            *(f"nn.functional.{each}" for each in ("linear", "layer_norm", "mse_loss")),
            "matmul",
            "Tensor.to",
            "Tensor.add",
        )
    }
    assert used == {
        "nn.functional.linear": [["bfloat16"] * 3, ["float32"] * 3],
        "matmul": [["bfloat16"] * 2],
        "nn.functional.layer_norm": [["bfloat16", "float32", "float32"]],
        "nn.functional.mse_loss": [["float32"] * 2],
        "Tensor.to": [["float32"]],
        "Tensor.add": [["bfloat16", "float32"]],
    }
    (linear, _) = with_api(cases, "torch.nn.functional.linear").values()
    assert linear["calls"] == 2 and linear["changed"] == {"autocast": "bfloat16"}


@pytest.mark.slow
def test_fused_kernels_of_inference_are_used_as_without_capture(tmp_path):
    program = (
        MODEL.split("optimizer =")[0]
        + """
net.eval()
with torch.inference_mode():
    print(net(torch.ones(2, 5, dtype=torch.int64)).sum().item().hex())
"""
    )
    done = capture(tmp_path, program)
    plain = subprocess.check_output([TORCH, "program.py"], cwd=tmp_path, text=True)
    assert done.stdout == plain, done.stderr
    assert any("_transformer_encoder_layer_fwd" in text for text in calls(tmp_path)[1])


NAN = """
import torch
net = torch.nn.Linear(4, 1)
torch.nn.init.constant_(net.weight, 0.1)
torch.nn.init.constant_(net.bias, 0.0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 8):
    y = net(torch.ones(2, 4)) - 0.2 * step
    loss = y.mean() + torch.sqrt(y.detach() * 0 + 5.5 - step).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def test_summaries_and_the_first_nan(tmp_path):
    done = capture(tmp_path, NAN, flags=["--summaries"])
    assert done.stdout == "nan\n", done.stderr
    head, cases = calls(tmp_path)
    root = 'torch.sqrt(Tensor([2, 1], "float32"))'
    assert head["first_nan"] == {"case": root, "step": 6, "input": False}
    values = cases[root]["values"]  # of calls 1, 2 and 4
    seen = {"min": 1.5, "max": 4.5, "nan": 0, "inf": 0, "zero": 0, "count": 6}
    assert values["in0"] == seen | {"axes": [[4.5, 4.5], [4.5, 4.5]]}
    assert values["out0"]["max"] == pytest.approx(4.5**0.5)


def test_a_forked_process_knows_nothing_of_the_nan_before(tmp_path):
    program = """
import os
import torch
torch.ones(3).abs().sub(2).sqrt()
if os.fork() == 0:
    torch.ones(3).cos()
else:
    os.wait()
"""
    done = capture(tmp_path, program, flags=["--summaries"])
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path)[0]["first_nan"]["case"] == 'torch.Tensor.sqrt(Tensor([3], "float32"))'


def test_summaries_change_no_bit(training, tmp_path):
    done = capture(tmp_path, MODEL, flags=["--summaries"])
    assert done.stdout == training[1], done.stderr
    head, without = calls(tmp_path)[0], calls(training[0])[0]
    assert head["first_nan"] is None and head["dispatched"] == without["dispatched"]


def test_the_level_of_the_dispatcher_has_backward_operators(training, tmp_path):
    done = capture(tmp_path, MODEL, flags=["--level=dispatch", "--steps=2", "--summaries"])
    assert done.returncode == 0 and done.stdout == training[1], done.stderr
    _, cases = calls(tmp_path)
    names = {text.partition("(")[0] for text in cases}
    assert {"torch.ops.aten.native_layer_norm_backward.default", "torch.ops.aten.addmm.default"} <= names
    assert all(name.startswith("torch.ops.") for name in names)
    assert names.isdisjoint(f"torch.ops.aten.{each}.default" for each in ("isnan", "aminmax", "stack"))
    assert {note["steps"] for note in cases.values()} == {1}
    command = [ASSAY, "api", "corpus.txt", "--test-lane=torch", "--log_dir=run", "-n1", "--values=usual"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    report = json.loads(subprocess.check_output([ASSAY, "report", "run", "--json"], cwd=tmp_path))
    outcomes = {key: value for key, value in report["outcomes"].items() if value}
    definite = sum(outcomes.get(each, 0) for each in ("pass", "mismatch"))
    assert definite >= 0.98 * len(cases), outcomes
    assert "mismatch" not in outcomes, report["findings"]


def test_operators_outside_of_calls_are_counted(training, tmp_path):
    assert calls(training[0])[0]["dispatched"]["missed"] == {}
    assert calls(training[0])[0]["dispatched"]["seen"] > 100
    scripted = "@torch.jit.script\ndef scripted(x):\n    return x.float().exp()\n\ntorch.manual_seed(0)"
    program = MODEL.replace("torch.manual_seed(0)", scripted)
    program = program.replace("loss.backward()", "scripted(x)\n    loss.backward()")
    done = capture(tmp_path, program)
    assert done.returncode == 0, done.stderr
    missed = calls(tmp_path)[0]["dispatched"]["missed"]
    assert missed.get("aten.exp.default") == 1, missed
    assert "operators of a step ran outside" in done.stderr


def test_no_argument_is_kept_alive(tmp_path):
    """A process group that lives until the end of Python aborts the program."""
    program = """
import sys
import torch

generator = torch.Generator()
before = sys.getrefcount(generator)
torch.rand(2, generator=generator)
print(sys.getrefcount(generator) == before)
"""
    done = capture(tmp_path, program)
    assert done.stdout == "True\n", done.stderr
