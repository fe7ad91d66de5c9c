"""`assay relations` with real frameworks, and with operators of which single relations do not hold."""

import json
import subprocess

import pytest
from tree import ASSAY, ROOT

pytestmark = pytest.mark.slow

# Operators for each of which some relation does not hold.
BROKEN = """
import time

import torch

@torch.library.custom_op("broken::of_batch", mutates_args=())
def of_batch(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + 1e-3 * (x.shape[0] > 1))

@torch.library.custom_op("broken::of_layout", mutates_args=())
def of_layout(x: torch.Tensor) -> torch.Tensor:
    return x * (1 if x.is_contiguous() else 1 + 1e-3)

@torch.library.custom_op("broken::of_time", mutates_args=())
def of_time(x: torch.Tensor) -> torch.Tensor:
    return x + 1e-3 * (time.time_ns() % 97)

@torch.library.custom_op("broken::gradient", mutates_args=())
def gradient(x: torch.Tensor) -> torch.Tensor:
    return x ** 3

gradient.register_autograd(
    lambda ctx, upstream: upstream * 2 * ctx.saved_tensors[0],
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)

class Once(torch.autograd.Function):
    # the right gradient, but as a constant: differentiated again it gives nothing
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(context, upstream):
        return upstream * 3 * context.saved_tensors[0].detach() ** 2

library = torch.library.Library("broken", "FRAGMENT")
library.define("once(Tensor x) -> Tensor")
library.impl("once", Once.apply, "CompositeImplicitAutograd")
"""
OF_TORCH = """\
torch.sin(Tensor([4, 3], "float64"))
torch.nn.functional.linear(Tensor([4, 8], "float32"), Tensor([3, 8], "float32"))
torch.nn.functional.batch_norm(Tensor([4, 3], "float64"), None, None, training=True)
torch.Tensor.add_(Tensor([4], "float32"), Tensor([4], "float32"))
torch.cumsum(Tensor([4, 3], "float64"), 0)
"""
OF_PADDLE = """\
paddle.sin(Tensor([4, 3], "float64"))
paddle.nn.functional.softmax(Tensor([4, 8], "float64"), 1)
"""


@pytest.fixture
def relations(tmp_path):
    """Runs `assay relations`; gives its table by API and relation, and what it printed."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def run(cases, *flags, code=0, name="run"):
        (tmp_path / "cases.txt").write_text(cases)
        command = [ASSAY, "relations", "--api_config_file=cases.txt", f"--log_dir={name}", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        if code == 2:
            return None, done.stderr
        table = json.loads((tmp_path / name / "relations.json").read_text())["apis"]
        return table, done.stdout

    return run


def held(table, api):
    """The relations of an API for which results or gradients were compared: the worse word of the two."""
    order = ["no", "rounding", "bits"]
    return {
        relation: min((each for each in (cell["result"], cell["gradient"]) if each in order), key=order.index)
        for relation, cell in table[api].items()
        if cell["result"] != "nothing"
    }


def test_what_holds_for_functions_of_pytorch(relations):
    table, said = relations(OF_TORCH)
    sin = held(table, "torch.sin")
    assert sin.pop("differences") == sin.pop("double_backward") == "rounding"
    assert set(sin.values()) == {"bits"}
    assert set(sin) == {"repeated", "rows", "halves", "permuted", "strided", "in_place", "out", "threads"}
    # Statistics of the whole batch, and sums along it: rows alone give something else.
    assert not {"rows", "halves"} & held(table, "torch.nn.functional.batch_norm").keys()
    assert not {"rows", "halves", "permuted"} & held(table, "torch.cumsum").keys()
    linear = held(table, "torch.nn.functional.linear")
    assert {"rows", "halves", "permuted"} <= linear.keys() and "no" not in linear.values()
    assert held(table, "torch.Tensor.add_").keys() == {"repeated", "threads"}
    assert "5 APIs" in said


def test_what_holds_for_functions_of_paddle(relations):
    if not (ROOT / ".venv" / "paddle").exists():
        pytest.skip("Paddle is not there: make build")
    table, _ = relations(OF_PADDLE, "--relations=rows,permuted,in_place,differences,double_backward")
    sin = held(table, "paddle.sin")
    assert sin == {
        "rows": "bits", "permuted": "bits", "in_place": "bits", "differences": "rounding",
        "double_backward": "rounding",
    }  # fmt: skip
    assert held(table, "paddle.nn.functional.softmax")["rows"] == "bits"


@pytest.mark.parametrize(
    ("operator", "relation"),
    [
        ("of_batch", "rows"), ("of_layout", "strided"), ("of_time", "repeated"), ("gradient", "differences"),
        ("once", "double_backward"),
    ],
)  # fmt: skip
def test_a_relation_that_does_not_hold_is_told(relations, tmp_path, operator, relation):
    (tmp_path / "broken.py").write_text(BROKEN)
    settings = 'version = 1\n[frameworks.torch]\nmodules = ["broken"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    case = f'torch.ops.broken.{operator}(Tensor([4, 3], "float64"))\n'
    table, said = relations(case, f"--relations={relation},threads")
    found = held(table, f"torch.ops.broken.{operator}")
    assert found[relation] == "no", said
    assert operator == "of_time" or found["threads"] == "bits"


def test_what_held_before_must_hold(relations, tmp_path):
    relations(OF_TORCH, "--relations=rows", name="before")
    file = tmp_path / "before" / "relations.json"
    relations(OF_TORCH, "--relations=rows", f"--against={file}")
    better = json.loads(file.read_text())
    cell = better["apis"]["torch.nn.functional.batch_norm"]["rows"]
    assert cell["result"] == "nothing"
    cell["result"] = "bits"  # as if an earlier build had computed every row alone
    file.write_text(json.dumps(better))
    _, said = relations(OF_TORCH, "--relations=rows", f"--against={file}", code=1)
    assert "lost: torch.nn.functional.batch_norm rows, result: was bits, is nothing" in said


def test_what_is_no_table_and_no_relation(relations, tmp_path):
    (tmp_path / "table.json").write_text('{"version": 9}')
    assert "another version" in relations(OF_TORCH, "--against=table.json", code=2)[1]
    assert "did you mean 'rows'?" in relations(OF_TORCH, "--relations=row", code=2)[1]
