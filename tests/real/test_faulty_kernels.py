"""Faults as kernels have them are found with default settings; without them the same cases pass."""

import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from engine import outcomes_by_api  # noqa: E402
from faulty_kernels import CASES, FAULTS  # noqa: E402

pytestmark = pytest.mark.slow

# Paddle 3.3.1's own: docs/findings.
OWN = {
    "paddle.nn.functional.log_softmax",
    "paddle.logcumsumexp",
    "paddle.sqrt",
    "paddle.nn.functional.rrelu",
}


def test_every_planted_fault_is_found(tmp_path):
    assert len(FAULTS) == len(CASES) >= 60
    assert outcomes_by_api(tmp_path, CASES, "faulty_kernels") == dict.fromkeys(FAULTS, "mismatch")


def test_without_them_only_paddles_own_are(tmp_path):
    found = outcomes_by_api(tmp_path, CASES)
    assert {name for name, outcome in found.items() if outcome != "pass"} <= OWN
