"""Operators as traces name them: judged as they are called below autograd, and each fault is seen."""

import pathlib
import subprocess

import pytest
from engine import run
from tree import ASSAY, ROOT

TRACE = (pathlib.Path(__file__).parent / "trace.txt").read_text()
# Lines that the CPU has no kernel for, which a GPU has.
MIXED = """\
Operator: aten._softmax_backward_data.default
cnt: 1, ((T([4, 8], f32), T([4, 8], f32), -1, f16), {})
Operator: aten.native_layer_norm_backward.default
cnt: 1, ((T([2, 8], f16), T([2, 8], f16), [8], T([2, 1], f32), T([2, 1], f32), None, None, \
[True, False, False]), {})
"""
# A backward pass that is wrong by one percent, and a step that leaves the momentum as it was.
FAULTY = """
import torch

library = torch.library.Library("aten", "IMPL")


def backward(grad, indices, num_weights, padding_idx, scale):
    zeros = grad.new_zeros(num_weights, grad.shape[-1])
    return zeros.index_add(0, indices.flatten(), grad.flatten(0, -2)) * 1.01


def sgd(self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, **_):
    for each, grad, buffer in zip(self, grads, momentum_buffer_list):
        each.sub_(lr * (buffer * momentum + grad + weight_decay * each))


library.impl("embedding_dense_backward", backward, "CPU")
library.impl("_fused_sgd_", sgd, "CPU")
"""


META = """
class Program_weight_tensor_meta_{0}:
    name = "{0}"
    shape = {1}
    dtype = "torch.{2}"
    data = {3}
"""
GRAPH = """
import torch
from torch import device

raise SystemExit("nobody runs this")


class GraphModule(torch.nn.Module):
    def forward(self, s0: torch.SymInt, L_x_: torch.Tensor, L_weight_: torch.nn.parameter.Parameter):
        l_x_ = L_x_
        y = torch._C._nn.linear(l_x_, L_weight_, None)
        l_x_ = None
        size = y.size(0)
        view = y.view(size, s0, -1)
        view *= 0.5
        part = view[(slice(None, None, None), 0, Ellipsis)]
        mask = torch.arange(3, dtype=torch.float32, device=device(type="cuda", index=0)) > 1
        moved = part.to(device(type="cuda"))
        z = 1.0 - torch.nn.functional.softmax(moved, dim=-1)
        view[0] = 1.0
        lost = torch.load("somewhere")
        unknown = lost + 1
        return (z, mask)
"""
CALLS = """
torch.nn.functional.linear(Tensor([2, 5], "float32"), Tensor([6, 5], "float32"), None)
torch.Tensor.view(Tensor([2, 6], "float32"), 2, 2, -1)
torch.Tensor.mul_(Tensor([2, 2, 3], "float32"), 0.5)
torch.Tensor.__getitem__(Tensor([2, 2, 3], "float32"), tuple(slice(None, None, None), 0, Ellipsis,))
torch.arange(3, dtype=Dtype(float32))
torch.Tensor.gt(Tensor([3], "float32"), 1)
torch.nn.functional.softmax(Tensor([2, 3], "float32", strides=[6, 1]), dim=-1, dtype=None)
torch.Tensor.__rsub__(Tensor([2, 3], "float32"), 1.0)
torch.Tensor.__setitem__(Tensor([2, 2, 3], "float32"), 0, 1.0)
"""


def test_a_graph_becomes_the_cases_of_its_calls(tmp_path):
    """Nothing of the file runs; what cannot be read, and what depends on it, is shown."""
    (tmp_path / "model.py").write_text(GRAPH)
    metas = (
        ("s0", [], "int64", [2]),
        ("L_x_", [2, 5], "float32", None),
        ("L_weight_", [6, 5], "float32", None),
    )
    (tmp_path / "weight_meta.py").write_text("".join(META.format(*each) for each in metas))
    done = subprocess.run([ASSAY, "corpus", "import", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split("\n")[:-1] == CALLS.strip().split("\n"), done
    assert "11 calls read, 9 cases; left out: 2 calls" in done.stderr
    assert "torch.load" in done.stderr and "it uses a value of an unknown shape" in done.stderr


def imported(folder, trace):
    """The cases of a trace, as `assay corpus import` writes them."""
    (folder / "trace.txt").write_text(trace)
    command = [ASSAY, "corpus", "import", folder / "trace.txt", "--out", folder / "cases.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "left out: 0 calls" in done.stderr, done.stderr
    return folder / "cases.txt"


def outcomes(folder, trace, lane="torch:cpu"):
    """Outcome of each operator of a trace."""
    flags = (f"--test-lane={lane}", "--reference-lane=torch:cpu")
    found = run(folder, imported(folder, trace), *flags)
    return {case.split("(")[0].removeprefix("torch.ops.aten."): outcome for case, outcome in found.items()}


def test_operators_of_a_trace_are_judged(tmp_path):
    found = outcomes(tmp_path, TRACE)
    assert len(found) == TRACE.count("Operator:")
    assert {name for name, outcome in found.items() if outcome != "pass"} == set(), found


def test_a_mix_of_dtypes_that_only_a_gpu_has(tmp_path):
    judged = "Operator: aten.neg.default\ncnt: 1, ((T([4], f32),), {})\n"
    assert list(outcomes(tmp_path, judged + MIXED).values()) == ["pass", "no_kernel", "no_kernel"]


MIXED_IN_FLOAT64 = """
import torch
from assay.registry import load_all
from assay.torch_cases.entries import entry_of

load_all()
entry = entry_of("torch.ops.aten._softmax_backward_data.default")
grad, output = torch.rand(4, 8), torch.rand(4, 8)
found = entry.call(grad, output, -1, torch.float16)
right = grad.double() * output - output.double() * (grad.double() * output).sum(-1, keepdim=True)
assert found.dtype == torch.float16 and torch.equal(found, right.half()), (found, right)
"""


def test_the_reference_knows_what_only_a_gpu_computes():
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    command = [python, "-c", MIXED_IN_FLOAT64]
    done = subprocess.run(command, cwd=ROOT / "python", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_faults_below_autograd_are_found(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\ndevice = "cpu"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    found = outcomes(tmp_path, TRACE, "faulty")
    wrong = {name for name, outcome in found.items() if outcome != "pass"}
    assert wrong == {"embedding_dense_backward.default", "_fused_sgd_.default"}


CASES = """\
torch.add(Tensor([4, 3], "float32"), Tensor([4, 3], "float32"))
torch.Tensor.view(Tensor([4, 6], "float32"), 2, 12)
torch.nn.functional.conv2d(Tensor([2, 3, 8, 8], "float32"), Tensor([4, 3, 3, 3], "float32"))
torch.ops.aten.mm.default(Tensor([4, 3], "float32"), Tensor([3, 5], "float32"))
torch.nn.functional.embedding(Tensor([4, 3], "int64"), Tensor([10, 4], "float32"))
"""
WANTED = {  # how many cases have the variant
    "--zero-size": 4, "--big=3": 4, "--dtype=bfloat16": 5, "--layout": 4, "--broadcast": 2,
}  # fmt: skip


@pytest.mark.slow
def test_variants_of_a_corpus_are_calls_that_pytorch_takes(tmp_path):
    (tmp_path / "cases.txt").write_text(CASES)
    made = ""
    for flag, count in WANTED.items():
        command = [ASSAY, "corpus", "derive", tmp_path / "cases.txt", flag]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and f" {count} cases; left" in done.stderr, (flag, done)
        made += done.stdout
    (tmp_path / "made.txt").write_text(made)
    flags = ("--test-lane=torch:cpu", "--reference-lane=torch:cpu", "--values=usual")
    found = run(tmp_path, tmp_path / "made.txt", *flags)
    assert set(found.values()) == {"pass"} and len(found) == sum(WANTED.values()), found
