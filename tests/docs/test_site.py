"""The site is built from docs/ without a warning: each link and each anchor leads somewhere."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = ROOT / ".venv/docs/bin/mkdocs"


@pytest.mark.skipif(not MKDOCS.exists(), reason="mkdocs is not installed: tools/setup docs")
def test_the_site_has_no_broken_link(tmp_path):
    built = subprocess.run(
        [
            MKDOCS,
            "build",
            "--strict",
            "--quiet",
            "--config-file",
            ROOT / "mkdocs.yml",
            "--site-dir",
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "index.html").exists()
    assert (tmp_path / "tutorials/first-api-run.html").exists()
