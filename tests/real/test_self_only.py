"""A case that was compared only with itself does not count as a pass."""

import json
import shutil
import subprocess

import pytest
from tree import ASSAY, ROOT

# Operators of a library of one's own: a wrong gelu, a mean that is rounded to half, half a gradient.
OPERATORS = """
import torch

@torch.library.custom_op("mylib::wrong_gelu", mutates_args=())
def wrong_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.9 * x)

@torch.library.custom_op("mylib::bad_mean", mutates_args=())
def bad_mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean(-1).half().to(x.dtype)

@torch.library.custom_op("mylib::bad_grad", mutates_args=())
def bad_grad(x: torch.Tensor) -> torch.Tensor:
    return x * x

@torch.library.custom_op("mylib::same", mutates_args=())
def same(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

CACHE = {}

@torch.library.custom_op("mylib::cached", mutates_args=())
def cached(x: torch.Tensor) -> torch.Tensor:
    return CACHE.setdefault(x.shape, x.sin()).clone()

bad_grad.register_autograd(lambda ctx, grad: grad * ctx.x, setup_context=lambda ctx, inputs, output: setattr(
    ctx, "x", inputs[0]))
"""
REFERENCE = """
from assay.reference import torch
from assay.registry import api

@api("torch.ops.mylib.wrong_gelu", grad=False)
def wrong_gelu(x):
    return x * torch.sigmoid(1.702 * x)

@api("torch.ops.mylib.bad_mean", grad=False)
def bad_mean(x):
    return x.mean(-1)

@api("torch.ops.mylib.bad_grad")
def bad_grad(x):
    return x * x
"""
OWN = [f'torch.ops.mylib.{name}(Tensor([6, 50], "float32"))' for name in ("wrong_gelu", "bad_mean")]
BAD = [f'torch.ops.mylib.{name}(Tensor([6, 50], "float32"))' for name in ("bad_grad", "same", "cached")]
PYTORCH = [
    'torch.nn.functional.gelu(Tensor([40], "float32"))',
    'torch.ops.aten.gelu(Tensor([40], "float32"))',
]
PADDLE = 'paddle.nn.functional.relu(Tensor([8, 16], "float32"))'


@pytest.fixture(name="api")
def fixture_api(tmp_path):
    """A function that runs cases with PyTorch and these flags, and returns (exit code, output)."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")
    (tmp_path / "mylib.py").write_text(OPERATORS)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mylib.py").write_text(REFERENCE)
    settings = f'modules = ["mylib"]\nenvironment = ["PYTHONPATH={tmp_path}"]\n'
    (tmp_path / "assay.toml").write_text("version = 1\n[frameworks.torch]\n" + settings)

    def api(cases, *flags):
        (tmp_path / "cases.txt").write_text("\n".join(cases) + "\n")
        command = [ASSAY, "api", "--api_config_file=cases.txt", "--log_dir=run", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return api


def report(folder, *flags):
    """What `assay report` prints of the run."""
    return subprocess.check_output([ASSAY, "report", folder / "run", *flags], text=True)


def listed(folder, outcome):
    return set(report(folder, "--list", outcome).splitlines())


def test_an_operator_of_ones_own_does_not_pass_against_itself(api, tmp_path):
    code, output = api(OWN + PYTORCH)
    assert code == 4, output
    assert "not judged" in output and "2 cases compared only with themselves (--allow=self_only" in output
    assert listed(tmp_path, "self_only") == set(OWN)
    assert listed(tmp_path, "pass") == set(PYTORCH)


@pytest.mark.slow
def test_each_report_counts_it(api, tmp_path):
    api(OWN)
    assert "self_only" in report(tmp_path)
    assert json.loads(report(tmp_path, "--json"))["outcomes"]["self_only"] == 2
    assert "self_only" in report(tmp_path, "--format=markdown")
    for flag in ("--junit", "--html"):
        file = tmp_path / flag[2:]
        report(tmp_path, f"{flag}={file}")
        assert "self_only" in file.read_text(), flag


def test_a_gate_accepts_it_where_the_user_says_so(api):
    assert api(OWN[:1], "--allow=self_only")[0] == 0
    code, output = api(OWN[:1], "--rerun", "--allow=weak")
    assert code == 2 and "--allow" in output


def test_with_a_reference_the_faults_show(api, tmp_path):
    code, output = api(OWN + BAD[:1], "--apis=own")
    assert code == 1, output
    assert listed(tmp_path, "mismatch") == {*OWN, BAD[0]}


@pytest.mark.slow
def test_what_shows_without_a_reference_fails(api, tmp_path):
    code, output = api(BAD)
    assert code == 1 and "its gradient of x is" in output, output
    assert "its result is x itself, unchanged; if that is right, a reference says so" in output
    assert listed(tmp_path, "test_error") == set(BAD)


def test_functions_of_pytorch_itself_pass_under_a_tolerance(api, tmp_path):
    assert api(PYTORCH + OWN[:1], "--atol=0.001")[0] == 4
    assert listed(tmp_path, "self_only") == set(OWN[:1])
    assert listed(tmp_path, "pass") == set(PYTORCH)


# A back end that replaces one of PyTorch's kernels, wrongly.
BACK_END = """
import torch

library = torch.library.Library("aten", "IMPL")
library.impl("asinh", lambda x: x.double().log1p().to(x.dtype), "CPU")
"""


@pytest.mark.parametrize("key", ["modules", "modules_in_lane"])
def test_a_kernel_that_replaces_pytorchs_own_is_no_reference_of_itself(api, tmp_path, key):
    (tmp_path / "back_end.py").write_text(BACK_END)
    settings = (tmp_path / "assay.toml").read_text().replace('modules = ["mylib"]', f'{key} = ["back_end"]')
    (tmp_path / "assay.toml").write_text(settings)
    case = 'torch.asinh(Tensor([40], "float32"))'
    code, output = api([case], "--values=usual")
    assert code == 4, output
    assert listed(tmp_path, "self_only") == {case}
    if key == "modules":
        assert "replace kernels of torch: aten::asinh" in output
    plain = f'[frameworks.torch]\nenvironment = ["PYTHONPATH={tmp_path}"]\n'
    mine = f'[lanes.mine]\nframework = "torch"\n{key} = ["back_end"]\n'
    (tmp_path / "assay.toml").write_text("version = 1\n" + plain + mine)
    shutil.rmtree(tmp_path / "run")
    untouched = 'torch.acosh(Tensor([40], "float32"))'
    code, output = api([case, untouched], "--test-lane=mine", "--values=usual")
    assert code == 1, output
    assert listed(tmp_path, "pass") == {untouched}  # the reference lane has none of these kernels


def test_another_execution_is_a_reference(api, tmp_path):
    code, output = api(OWN[:1], "--test-lane=torch:threads=2")
    assert code == 0, output
    assert listed(tmp_path, "pass") == set(OWN[:1])


def test_goldens_of_the_same_build_are_no_reference(api, tmp_path):
    cases = OWN[:1] + PYTORCH[:1]
    (tmp_path / "all.txt").write_text("\n".join(cases) + "\n")
    command = [ASSAY, "record", "--api_config_file=all.txt", "--log_dir=gold"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    code, output = api(cases, "--reference-lane=gold:gold")
    assert code == 4, output
    assert listed(tmp_path, "self_only") == set(OWN[:1])
    assert listed(tmp_path, "pass") == set(PYTORCH[:1])


def test_pytorch_does_not_judge_a_function_of_paddle_by_itself(api, tmp_path):
    code, output = api([PADDLE], "--test-lane=torch")
    assert code == 4, output
    assert listed(tmp_path, "unsupported") == {PADDLE}


def test_two_lanes_of_pytorch_compare_the_references_of_paddle(api, tmp_path):
    code, output = api([PADDLE], "--test-lane=torch", "--reference-lane=torch:threads=2")
    assert code == 0, output
    assert listed(tmp_path, "pass") == {PADDLE}
