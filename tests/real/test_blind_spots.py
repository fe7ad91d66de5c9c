"""Faults that real bug reports show are found under every seed; without them the same cases pass."""

import os
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from engine import outcomes_by_api, run  # noqa: E402
from faulty_blind_spots import CASES, FAULTS  # noqa: E402

pytestmark = pytest.mark.slow

SEEDS = ["0", "1", "2"]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_planted_fault_is_found_under_every_seed(tmp_path, seed):
    found = outcomes_by_api(tmp_path, CASES, "faulty_blind_spots", f"--random_seed={seed}")
    assert found == dict.fromkeys(FAULTS, "mismatch")


@pytest.mark.parametrize("seed", SEEDS)
def test_without_them_everything_passes(tmp_path, seed):
    found = outcomes_by_api(tmp_path, CASES, None, f"--random_seed={seed}")
    assert {name: outcome for name, outcome in found.items() if outcome != "pass"} == {}


def test_what_the_reference_ignores_is_unsupported(tmp_path):
    expected = {
        'paddle.nn.functional.interpolate(Tensor([1, 2, 4, 4], "float32"), scale_factor=2, mode="bicubic", '
        "antialias=True)": "unsupported",
        'paddle.nn.LSTMCell(4, 8, proj_size=2)(Tensor([3, 4], "float32"))': "unsupported",
        'paddle.abs(Tensor([3, 4], "float32"))': "pass",  # a run without a verdict fails
    }
    corpus = tmp_path / "cases.txt"
    corpus.write_text("\n".join(expected) + "\n")
    assert run(tmp_path, corpus) == expected
