"""Large inputs that both lanes have in common."""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]

from mapped_framework import CASES  # noqa: E402

from engine import findings, outcomes_by_api  # noqa: E402


def test_large_inputs_are_made_once_and_what_writes_into_one_is_found(tmp_path):
    """The wrapped frameworks raise where an input lies elsewhere than it should."""
    found = outcomes_by_api(tmp_path, CASES, "mapped_framework")
    assert found == {
        "paddle.any": "pass", "paddle.all": "pass", "paddle.neg": "pass", "paddle.sum": "mismatch"
    }  # fmt: skip
    (finding,) = findings(tmp_path)
    assert "input" in str(finding), finding
