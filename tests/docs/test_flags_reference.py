"""docs/reference/flags.md is what tools/flags-reference makes of the program's help."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/assay"


@pytest.mark.skipif(not PROGRAM.exists(), reason="assay is not built: make build")
def test_the_page_is_current():
    generated = subprocess.run(
        [sys.executable, ROOT / "tools/flags-reference", PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    page = (ROOT / "docs/reference/flags.md").read_text()
    assert page == generated, "run: tools/flags-reference > docs/reference/flags.md"
