"""References on a GPU, in PyTorch's Python, where none is."""

import pathlib
import subprocess

import pytest

from engine import ROOT

PYTHON = ROOT / ".venv" / "torch" / "bin" / "python"
CHECKS = pathlib.Path(__file__).with_name("gpu_reference_checks.py")


def test_what_gpus_do_otherwise_is_computed_on_the_cpu():
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is not there: make build")
    done = subprocess.run([PYTHON, CHECKS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = [line.split()[1].split("(")[0] for line in CHECKS.open() if line.startswith("def test_")]
    assert done.stdout.split() == wanted
