"""docs/reference/flags.md is what `assay manual --markdown` prints."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/assay"


@pytest.mark.skipif(not PROGRAM.exists(), reason="assay is not built: make build")
def test_the_page_is_current():
    generated = subprocess.run([PROGRAM, "manual", "--markdown"], capture_output=True, text=True, check=True)
    page = (ROOT / "docs/reference/flags.md").read_text()
    assert page == generated.stdout, "run: assay manual --markdown > docs/reference/flags.md"
