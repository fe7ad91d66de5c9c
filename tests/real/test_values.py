"""What a pass excludes: planted faults and Paddle's own that show only under other values than the usual."""

import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from engine import outcomes_by_api  # noqa: E402
from faulty_values import CASES, FAULTS, OWN_FAULTS  # noqa: E402


@pytest.mark.slow
def test_every_planted_fault_is_found(tmp_path):
    assert outcomes_by_api(tmp_path, CASES, "faulty_values") == dict.fromkeys(FAULTS, "mismatch")


def test_without_them_only_paddles_own_are(tmp_path):
    own = {case.split("(")[0] for case in OWN_FAULTS}
    found = outcomes_by_api(tmp_path, CASES)
    assert {name for name, outcome in found.items() if outcome != "pass"} <= own


def test_paddles_own_faults_are_found(tmp_path):
    found = outcomes_by_api(tmp_path, OWN_FAULTS)
    assert found == dict.fromkeys([case.split("(")[0] for case in OWN_FAULTS], "mismatch")
