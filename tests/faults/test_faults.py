"""Does it find the bug: real Paddle with a fault in each of some forty APIs, against real PyTorch."""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
ASSAY = ROOT / "build" / "release" / "bin" / "assay"
sys.path[:0] = [str(ROOT / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from faulty_framework import CASES, FAULTS  # noqa: E402


def outcomes(folder, module):
    """Outcome of each API of CASES under this wrapper of the frameworks."""
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(CASES) + "\n")
    if module:
        setting = f'environment = ["ASSAY_FRAMEWORK_MODULE={module}", "PYTHONPATH={FOLDER}"]\n'
        tables = "".join(f"[frameworks.{name}]\n{setting}" for name in ("paddle", "torch"))
        (folder / "assay.toml").write_text("version = 1\n" + tables)
    run = folder / "run"
    command = [ASSAY, "api", f"--api_config_file={corpus}", "--accuracy=True", f"--log_dir={run}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {}
    for outcome in ("pass", "mismatch", "paddle_error", "torch_error", "crash", "no_kernel", "rejected"):
        listed = subprocess.run([ASSAY, "report", run, "--list", outcome], capture_output=True, text=True)
        found.update((line.split("(")[0], outcome) for line in listed.stdout.splitlines())
    return found


@pytest.fixture(autouse=True)
def frameworks():
    for needed in (ASSAY, ROOT / ".venv" / "paddle", ROOT / ".venv" / "torch"):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not there: make build")


def test_every_fault_is_found(tmp_path):
    assert outcomes(tmp_path, "faulty_framework") == dict.fromkeys(FAULTS, "mismatch")


def test_without_faults_everything_passes(tmp_path):
    assert len(FAULTS) == len(CASES) >= 40
    assert outcomes(tmp_path, None) == dict.fromkeys(FAULTS, "pass")
