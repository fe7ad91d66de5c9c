"""What else follows a program, such as tracers and compilers, sees what it would see without capture."""

import subprocess

import pytest
from capture.programs import TORCH, calls, capture, with_api

TRACED = """
import warnings
import numpy
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")


class Weight(torch.nn.Parameter):
    pass


class Counted(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
layers = torch.nn.Conv1d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 2)
net = torch.nn.Sequential(*layers)
net[3].weight = Weight(net[3].weight.detach())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(1, 2, 8)
for _ in range(2):
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    traced = torch.jit.trace(net, x)
    print(traced(x).sum().item().hex(), len(list(traced.graph.nodes())))
print(len(list(make_fx(lambda x: torch.nn.functional.gelu(x).var(0))(x).graph.nodes)))
with FakeTensorMode():
    print(torch.nn.Conv1d(2, 4, 3)(torch.randn(1, 2, 8)).shape)
with Counted() as counted:
    torch.tanh(x)
print(counted.seen)
print(torch.func.vmap(torch.nn.Linear(8, 3))(x).sum().item().hex())
compiled = torch.compile(lambda x: torch.sin(x).cumsum(0), backend="eager", dynamic=True)
print(torch.mul(torch.ones(numpy.int64(3)), numpy.float32(2)).sum().item(), compiled(x).sum().item().hex())
"""


@pytest.mark.slow
def test_traces_of_the_program_do_not_hold_the_capture(tmp_path):
    done = capture(tmp_path, TRACED, flags=["--summaries", "--deep=run.deep"])
    plain = subprocess.check_output([TORCH, "program.py"], cwd=tmp_path, text=True)
    assert done.returncode == 0 and done.stdout == plain, done.stderr
    head, cases = calls(tmp_path)
    assert all("FakeTensor" in reason or "Proxy" in reason for reason in head["left_out"]), head["left_out"]
    assert with_api(cases, "torch.mul").keys() == {'torch.mul(Tensor([3], "float32"), 2.0)'}
    assert 'torch.sin(Tensor([1, 2, 8], "float32"))' in cases
    weight = 'Tensor([1, 24], "float32"), Tensor([2, 24], "float32"), Tensor([2], "float32")'
    assert f"torch.nn.functional.linear({weight})" in cases
    names = {line.split('"')[1] for line in (tmp_path / "run.deep").read_text().splitlines()}
    assert {"0 0", "3 0"} <= names


@pytest.mark.slow
def test_a_trace_in_the_step_that_measures_coverage(tmp_path):
    done = capture(tmp_path, TRACED)
    plain = subprocess.check_output([TORCH, "program.py"], cwd=tmp_path, text=True)
    assert done.returncode == 0 and done.stdout == plain, done.stderr


SPREAD = """
import os
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=0, world_size=1)
net = torch.nn.Linear(8, 4)
fully_shard(net, mesh=dist.device_mesh.init_device_mesh("cpu", (1,)))
optimizer = torch.optim.Adam(net.parameters())
net(torch.ones(2, 8)).sum().backward()
optimizer.step()
dist.destroy_process_group()
"""


def test_spread_tensors_are_what_the_rank_has(tmp_path):
    done = capture(tmp_path, SPREAD)
    assert done.returncode == 0, done.stderr
    head, cases = calls(tmp_path)
    assert not any("DTensor" in reason for reason in head["left_out"]), head["left_out"]
    assert any(text.startswith('torch.Tensor.lerp_(Tensor([4, 8], "float32")') for text in cases)
