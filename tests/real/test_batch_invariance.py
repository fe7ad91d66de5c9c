"""`assay relations --require`: batch invariance as a gate."""

import pathlib
import re
import subprocess

import pytest
from engine import passes_in_torch
from tree import ASSAY, ROOT

KERNELS = pathlib.Path(__file__).resolve().parent / "batch_kernels.py"
INPUTS = '(Tensor([16, 4096], "float32"), Tensor([4096], "float32"))'
# Of a language model; elementwise functions and those that work by rows.
MODEL = [
    'torch.nn.functional.silu(Tensor([8, 64, 256], "bfloat16"))',
    'torch.nn.functional.rms_norm(Tensor([8, 64, 256], "bfloat16"), [256], Tensor([256], "bfloat16"))',
    'torch.softmax(Tensor([32, 1000], "float32"), -1)',
]


@pytest.fixture(name="require")
def fixture_require(tmp_path):
    """A function that runs the gate, and returns (exit code, output)."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def require(what, *flags):
        command = [ASSAY, "relations", f"--require={what}", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return require


def kernel(name):
    return f"--kernel={KERNELS}:{name}", f"--api_config=torch.kernel.{name}{INPUTS}"


ALL = "rows=bits,batches=bits,position=bits,padding=bits,chunks=bits"


def test_an_invariant_kernel_holds(require):
    code, output = require(ALL, *kernel("invariant"))
    assert code == 0 and "1 cases hold" in output, output


@pytest.mark.parametrize(
    ("name", "what", "told"),
    [
        ("split_by_batch", "batches=bits", "the result for x0[0:1] differs in"),
        pytest.param(
            "split_by_batch", "rows=bits", "the result for x0[0:1] differs in", marks=pytest.mark.slow
        ),
        pytest.param(
            "by_position", "position=bits", "the result for x0.roll(5, 0) differs in", marks=pytest.mark.slow
        ),
        pytest.param(
            "backward_only", "batches=bits", "the gradient for x0[0:1] differs in", marks=pytest.mark.slow
        ),
    ],
)
def test_a_kernel_that_depends_on_the_batch_fails(require, tmp_path, name, what, told):
    code, output = require(what, *kernel(name))
    assert code == 1 and told in output and "ulps of the largest" in output, output
    folder = re.search("finding (.*) 1 --script", output)[1]
    script = [ASSAY, "finding", folder, "1", "--no-run", "--script=shown.py"]
    subprocess.run(script, cwd=tmp_path, capture_output=True, check=True)
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    done = subprocess.run([python, tmp_path / "shown.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "elements differ" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("draws", ["5", pytest.param("100", marks=pytest.mark.slow)])
def test_planted_kernels_are_caught_in_each_draw_and_right_ones_in_none(draws):
    passes_in_torch(KERNELS.with_name("batch_checks.py"), draws)


@pytest.mark.slow
def test_rounding_is_accepted_where_only_that_is_required(require):
    assert require("batches=rounding", *kernel("split_by_batch"))[0] == 0


def test_functions_of_pytorch_with_real_shapes(require, tmp_path):
    (tmp_path / "cases.txt").write_text("\n".join(MODEL) + "\n")
    code, output = require("rows=bits,chunks=bits", "cases.txt")
    assert code == 0 and "3 cases hold" in output, output


def test_attention_with_a_cache(require):
    tensors = ", ".join(['Tensor([2, 4, 48, 32], "float32")'] * 3)
    case = f"torch.nn.functional.scaled_dot_product_attention({tensors}, is_causal=True)"
    code, output = require("cache=rounding,chunks=rounding", f"--api_config={case}")
    assert code == 0 and "1 cases hold" in output, output


def test_what_has_no_batch_is_not_judged(require):
    code, output = require("rows=bits", '--api_config=torch.cumsum(Tensor([8], "float32"), 0)')
    assert code == 4 and "nothing" in output, output


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--require=colums=bits",), "require takes rows"),
        (("--require=rows=exact",), "require takes rows"),
        (("--require=rows=bits",), "nothing to run"),
    ],
)
def test_wrong_input_is_refused(require, flags, told, tmp_path):
    case = ['--api_config=torch.exp(Tensor([8], "float32"))'] * ("rows=bits" not in flags[0])
    command = [ASSAY, "relations", *flags, *case]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and told in done.stdout + done.stderr, done.stdout + done.stderr
