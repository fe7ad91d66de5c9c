"""Kernels that round and overflow elsewhere are right; wrong ones beside them are found."""

import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from engine import outcomes_by_api  # noqa: E402
from other_kernels import CASES  # noqa: E402

pytestmark = pytest.mark.slow


def test_what_only_rounding_or_range_differs_in_is_right(tmp_path):
    expected = {case.split("(")[0]: outcome for case, (_, outcome) in CASES.items()}
    assert outcomes_by_api(tmp_path, CASES, "other_kernels") == expected
