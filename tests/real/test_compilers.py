"""What a lane compiles does not count against the limit of a case."""

import subprocess

import pytest
from tree import ASSAY, ROOT

TRITON = """
import time


def compile(seconds):
    time.sleep(seconds)
"""
KERNEL = """
import triton.compiler

DONE = []


def twice(x):
    if not DONE:
        DONE.append(triton.compiler.compile(8))
    return x * 2


def reference(x):
    return x + x
"""


@pytest.mark.slow
def test_a_kernel_may_compile_for_longer_than_the_limit(tmp_path):
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    (tmp_path / "triton" / "compiler.py").write_text(TRITON)
    (tmp_path / "mine.py").write_text(KERNEL)
    command = [ASSAY, "kernel", "mine.py:twice", "--reference=mine.py:reference", "--no-larger-shapes"]
    command += ["--values=usual", "--timeout=5s", "-n", "1", '--api_config=(Tensor([8], "float32"))']
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
