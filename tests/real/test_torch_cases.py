"""Cases with PyTorch's own names, PyTorch alone: names, references, draws, executions, OpInfo's corpus."""

import shutil
import subprocess

import pytest

from engine import ASSAY, ROOT

PASSING = """\
torch.add(Tensor([2, 3], "float32"), 2, alpha=3)
torch.add(Tensor([2, 3], "float32"), Tensor([2, 3], "float32"), out=Tensor([2, 3], "float32"))
torch.Tensor.add_(Tensor([2, 3], "float16"), Tensor([2, 3], "float16"))
torch.nn.functional.softmax(Tensor([2, 3], "bfloat16"), dim=-1)
torch.nn.functional.elu(Tensor([20], "float32"), inplace=True)
torch.nn.functional.batch_norm(Tensor([4, 3], "float32"), Tensor([3], "float32"), Tensor([3], "float32"))
torch.nn.functional.nll_loss(Tensor([3, 5], "float32"), Tensor([3], "int64"))
torch.nn.functional.dropout(Tensor([40, 50], "float32"), p=0.3)
torch.gather(Tensor([4, 5], "float32"), 1, Tensor([4, 2], "int64"))
torch.index_copy(Tensor([6, 5], "float32"), 0, Tensor([3], "int64"), Tensor([3, 5], "float32"))
torch.scatter(Tensor([6, 5], "float32"), 0, Tensor([3, 5], "int64"), Tensor([3, 5], "float32"))
torch.linalg.solve(Tensor([4, 4], "float64"), Tensor([4, 2], "float64"))
torch.special.ndtr(Tensor([40], "float32"))
torch.fft.rfft(Tensor([16], "float32"))
torch.igamma(Tensor([8], "float32"), Tensor([8], "float32"))
torch.randn(list[400])
torch.Tensor.exponential_(Tensor([400], "float32"), 2.0)
torch.ops.aten.relu.default(Tensor([2, 3], "float32"))
""".splitlines()

REFUSED = {
    'torch.os.system("ls")': "os has none",
    'torch.save(Tensor([2], "float32"))': "save is not a function of tensors",
    'torch.Tensor.numpy(Tensor([2], "float32"))': "numpy is not a function of tensors",
    'torch.utils.data.get_worker_info(Tensor([2], "float32"))': "a case may call",
    'torch.nosuch(Tensor([2], "float32"))': "has no nosuch",
    'torch.ops.aten.__class__(Tensor([2], "float32"))': "torch.ops.aten.__class__",
}

PLANTED = """
import torch
import torch.nn.functional as functional

right = functional.softmax

def softmax(*args, **kwargs):  # one part in 10,000 too large
    return right(*args, **kwargs) * (1 + 1e-4)

softmax.__module__ = "torch.nn.functional"
functional.softmax = softmax
torch.overrides.get_testing_overrides.cache_clear()
torch.overrides.get_testing_overrides()[softmax] = lambda: None
"""


@pytest.fixture
def api(tmp_path):
    """Runs `assay api` with PyTorch in both lanes."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def run(cases, *flags, lane="torch", reference="torch", code=0):
        (tmp_path / "cases.txt").write_text("\n".join(cases) + "\n")
        lanes = f"--test-lane={lane}", f"--reference-lane={reference}"
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        command = [ASSAY, "api", "--api_config_file=cases.txt", "--log_dir=run", *lanes, *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr

        def listed(outcome):
            return subprocess.check_output([ASSAY, "report", tmp_path / "run", "--list", outcome], text=True)

        return done.stdout + done.stderr, listed

    return run


def test_functions_of_every_namespace_pass(api):
    _, listed = api(PASSING)
    assert listed("pass").splitlines() and len(listed("pass").splitlines()) == len(PASSING)


def test_names_that_are_no_functions_of_tensors_are_refused(api):
    said, listed = api(list(REFUSED), code=1)
    assert len(listed("invalid").splitlines()) == len(REFUSED)
    for hint in REFUSED.values():
        assert hint in said


def test_a_torch_name_in_a_lane_of_paddle_is_unsupported(api):
    if not (ROOT / ".venv" / "paddle").exists():
        pytest.skip("Paddle is not there: make build")
    _, listed = api([PASSING[0]], lane="paddle", code=4)
    assert listed("unsupported").startswith("torch.add")


def test_a_wrong_function_is_found(api, tmp_path):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "faulty.py").write_text(PLANTED)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={overlay}"]\n')
    softmax = 'torch.nn.functional.softmax(Tensor([4, 10], "float32"), 1)'
    said, listed = api([PASSING[0], softmax], lane="faulty", code=1)
    assert listed("mismatch").startswith("torch.nn.functional.softmax"), said
    assert listed("pass").startswith("torch.add")


def test_a_mean_that_drifts_is_found_in_draws(api):
    said, _ = api(['torch.normal(Tensor([4000], "float32"), 0.5)'])
    assert "passes" in said


@pytest.mark.parametrize(
    "lane", ["torch:compile=aot_eager", "torch:threads=2", "torch:vmap", "torch:deterministic"]
)
def test_executions_agree_with_eager_mode(api, lane):
    cases = [case for case in PASSING if "_(" not in case and "inplace" not in case and "out=" not in case]
    said, listed = api(cases[:8], lane=lane)
    skipped = listed("skip").splitlines()
    assert len(listed("pass").splitlines()) == 8 - len(skipped) >= 6, said


@pytest.mark.parametrize(
    "lane, hint",
    [
        ("torch:nosuch:0", "has no device nosuch"),
        ("torch:cpu+nosuch", "no execution is called nosuch"),
        ("trch:compile", "did you mean"),
    ],
)
def test_lanes_that_do_not_exist(api, lane, hint):
    said, _ = api([PASSING[0]], lane=lane, code=2)
    assert hint in said


def test_opinfo_writes_a_corpus_whose_cases_pass(api, tmp_path):
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    if subprocess.run([python, "-c", "import expecttest"], check=False, capture_output=True).returncode:
        pytest.skip("expecttest is not there: make build")
    command = [ASSAY, "corpus", "opinfo", "--ops=^(addmm|gather|clamp|nn.functional.conv1d)$"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    cases = done.stdout.splitlines()
    assert f"{len(cases)} cases of torch" in done.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout == done.stdout
    for part in ("torch.addmm(", "torch.Tensor.addmm_(", "out=Tensor(", '"bfloat16"', '"complex64"', "int64"):
        assert any(part in case for case in cases), part
    _, listed = api(cases)
    passed, rejected = listed("pass").splitlines(), listed("rejected").splitlines()
    assert len(passed) + len(rejected) == len(cases)
    assert 0 < len(rejected) < len(cases) / 10  # OpInfo's error inputs


@pytest.fixture(scope="module")
def device_folder(tmp_path_factory):
    """Where PyTorch builds the device of private_device.cpp, once."""
    folder = tmp_path_factory.mktemp("device")
    source = (ROOT / "tests" / "real" / "private_device.cpp").read_text()
    (folder / "private_device.cpp").write_text(source)
    return folder


def test_a_device_of_another_module_is_tested_through_the_host(api, device_folder, tmp_path):
    beside = ROOT / "tests" / "real"
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(beside),
        "ASSAY_PRIVATE_BUILD": str(device_folder),
    }
    subprocess.run([python, "-c", "import private_device"], check=True, env=environment, capture_output=True)
    values = ", ".join(f'"{name}={environment[name]}"' for name in ("PYTHONPATH", "ASSAY_PRIVATE_BUILD"))
    lane = 'framework = "torch"\ndevice = "private:0"\nmodules = ["private_device"]\n'
    (tmp_path / "assay.toml").write_text(
        f"version = 1\n[lanes.right]\n{lane}environment = [{values}]\n"
        f'[lanes.wrong]\n{lane}environment = [{values}, "ASSAY_PRIVATE_FAULT=1"]\n'
    )
    relu = 'torch.relu(Tensor([20], "float32"))'
    cases = [case for case in PASSING if "ops.aten" not in case] + [relu]
    said, listed = api(cases, lane="right")
    assert "test lane on private:0" in said
    assert len(listed("pass").splitlines()) == len(cases)
    said, listed = api(cases, lane="wrong", code=1)
    assert listed("mismatch").strip() == relu, said


def test_a_device_whose_module_is_missing(api):
    said, _ = api([PASSING[0]], lane="torch:npu:0", code=2)
    assert "has no device npu; this build has: cpu" in said
