"""docs/reference/coverage.md against the installed Paddle."""

import subprocess

import pytest
from assay import coverage


@pytest.fixture(scope="module")
def page(root):
    """What the generator gives today."""
    python = root / ".venv" / "paddle" / "bin" / "python"
    if not python.exists():
        pytest.skip("no environment with Paddle: make setup")
    done = subprocess.run(
        [python, "-m", "assay.coverage"],
        env={"PYTHONPATH": str(root / "python"), "GLOG_minloglevel": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout[done.stdout.index("# API coverage") :]


def test_the_page_is_current(page, source):
    # To write it again: python -m assay.coverage docs/reference/coverage.md
    assert source("docs/reference/coverage.md") == page


def shares(page):
    """The share of each row, by its namespace."""
    rows = [line.split("|") for line in page.splitlines() if line.endswith("% |")]
    return {row[1].strip(" `"): float(row[6].strip(" %")) for row in rows}


def test_the_tables_know_nearly_all(page):
    found = shares(page)
    assert found["all functions"] >= 97
    assert found["paddle.nn"] >= 90 and found["paddle.optimizer"] >= 90


def test_whatever_is_left_out_has_its_reason(page):
    assert "without a reason" not in page


def test_nothing_is_both_known_and_left_out(apis):
    assert set(coverage.listed(coverage.LEFT_OUT)) & set(apis) == set()


def test_reasons_are_given_once():
    names = [name for names in coverage.NO_FUNCTIONS.values() for name in names.split()]
    names += [name for names in coverage.LEFT_OUT.values() for name in names.split()]
    assert len(names) == len(set(names))
