"""The site is built from docs/ without a warning: each link and each anchor leads somewhere."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = ROOT / ".venv/docs/bin/mkdocs"
pytestmark = pytest.mark.skipif(not MKDOCS.exists(), reason="mkdocs is not installed: tools/setup docs")


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    # Not with --quiet: mkdocs then counts no warnings, and --strict passes everything.
    command = [MKDOCS, "build", "--strict", "--config-file", root / "mkdocs.yml", "--site-dir", site]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def test_the_site_has_no_broken_link(tmp_path):
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "index.html").exists()
    assert (tmp_path / "tutorials/first-api-run.html").exists()


@pytest.mark.slow
def test_a_broken_link_fails_the_build(tmp_path):
    for name in ("mkdocs.yml", "tools/site_links.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs/benchmarks.md").open("a") as page:
        page.write("\n[nowhere](reference/nowhere.md)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert "reference/nowhere.md" in built.stdout + built.stderr
