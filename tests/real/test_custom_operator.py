"""A custom operator of Paddle that is compiled here, with a reference in a user's own file."""

import os
import shutil
import subprocess

import pytest
from engine import run
from tree import ASSAY, ROOT

EXAMPLE = ROOT / "examples" / "custom_operator"
CASES = (
    'paddle._C_ops._run_custom_op("scaled_relu", Tensor([4, 5], "float32"), 3.0)',
    'paddle._C_ops._run_custom_op("scaled_relu", Tensor([7], "float64"), 0.5)',
    'paddle._C_ops._run_custom_op("another", Tensor([7], "float64"), 0.5)',
    'paddle.abs(Tensor([7], "float64"))',
)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The example's operator as a shared library."""
    site = next((ROOT / ".venv" / "paddle" / "lib").glob("python*/site-packages/paddle"), None)
    python = ROOT / ".venv" / "paddle" / "bin" / "python"
    if site is None or shutil.which("g++") is None:
        pytest.skip("no environment with Paddle, or no compiler")
    headers = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"], text=True
    ).strip()
    made = tmp_path_factory.mktemp("operator") / "scaled_relu.so"
    command = ["g++", "-std=c++17", "-fPIC", "-shared", "-w", "-DPADDLE_WITH_CUSTOM_KERNEL"]
    command += [f"-I{site / 'include'}", f"-I{site / 'include' / 'third_party'}", f"-I{headers}"]
    command += [EXAMPLE / "scaled_relu.cc", "-o", made, f"-L{site / 'base'}", "-l:libpaddle.so"]
    subprocess.run(command, check=True)
    return made


def outcomes(folder, library, reference, *flags):
    """The outcome of each case, with this text as the only file of references; no text: no folder."""
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(CASES) + "\n")
    environment = f'["PYTHONPATH={EXAMPLE}", "SCALED_RELU={library}"]'
    settings = f'[frameworks.paddle]\nmodules = ["load_scaled_relu"]\nenvironment = {environment}\n'
    (folder / "assay.toml").write_text("version = 1\n" + settings)
    if reference:
        (folder / "own").mkdir()
        (folder / "own" / "scaled.py").write_text(reference)
        flags = (f"--apis={folder / 'own'}", *flags)
    found = run(folder, corpus, *flags)
    return [found[case] for case in CASES]


def test_an_operator_is_compared_with_its_reference(tmp_path, library):
    text = (EXAMPLE / "references" / "scaled_relu.py").read_text()
    assert outcomes(tmp_path, library, text) == ["pass", "pass", "no_kernel", "pass"]


def test_a_wrong_reference_is_seen(tmp_path, library):
    text = (EXAMPLE / "references" / "scaled_relu.py").read_text().replace("* factor", "* (factor + 0.25)")
    assert outcomes(tmp_path, library, text) == ["mismatch", "mismatch", "no_kernel", "pass"]


def test_without_a_reference_there_is_no_verdict(tmp_path, library):
    assert outcomes(tmp_path, library, "") == ["unsupported", "unsupported", "no_kernel", "pass"]


def test_the_example_of_pytorch_finds_the_wrong_twin(tmp_path):
    example = ROOT / "examples" / "custom_operator_torch"
    found = run(tmp_path, example / "cases.txt", f"--settings={example / 'assay.toml'}", "--test-lane=torch")
    right = {case for case, outcome in found.items() if outcome == "pass"}
    wrong = {case for case, outcome in found.items() if outcome == "mismatch"}
    assert len(right) == 4 and not any("wrong" in case for case in right), found
    assert len(wrong) == 2 and all("wrong" in case for case in wrong), found
    # Its script imports the lane's modules, and so does the program that runs it.
    command = [ASSAY, "finding", tmp_path / "run", "1", "--budget=0", f"--settings={example / 'assay.toml'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "assay ran the script here: it exits with 1, so the fault shows" in done.stdout, done.stderr


def test_the_doctor_says_what_is_loaded():
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")
    example = ROOT / "examples" / "custom_operator_torch"
    command = [ASSAY, "doctor", f"--settings={example / 'assay.toml'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "with the modules operators" in done.stdout, done.stdout
    assert "with own references of torch.ops.examples.scaled_relu, " in done.stdout, done.stdout


def test_the_doctor_refuses_a_plug_in_that_is_not_there(tmp_path):
    if not ASSAY.exists():
        pytest.skip("assay is not there: make build")
    environment = os.environ | {"ASSAY_DEVICE_PLUGIN": "missing.so"}
    done = subprocess.run([ASSAY, "doctor"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "missing  ASSAY_DEVICE_PLUGIN: " in done.stdout, done.stdout
    assert "missing.so" in done.stdout
