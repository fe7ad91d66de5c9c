"""Faults of PyTorch's bug reports are found under every seed; without them the same cases pass."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from engine import run  # noqa: E402
from faulty_torch import CASES  # noqa: E402
from tree import ASSAY  # noqa: E402

pytestmark = pytest.mark.slow

SEEDS = [0, 1, 2]


def outcomes(folder, lane, seed):
    """The outcome of each case whose test lane has the faults, or PyTorch as it is."""
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(CASES) + "\n")
    (folder / "assay.toml").write_text(
        'version = 1\n[lanes.faulty]\nframework = "torch"\n'
        f'environment = ["ASSAY_FRAMEWORK_MODULE=faulty_torch", "PYTHONPATH={FOLDER}"]\n'
    )
    return run(folder, corpus, f"--test-lane={lane}", "--reference-lane=torch", f"--random_seed={seed}")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_planted_fault_is_found_under_every_seed(tmp_path, seed):
    found = outcomes(tmp_path, "faulty", seed)
    assert len(found) == len(CASES)
    assert {case: outcome for case, outcome in found.items() if outcome != "mismatch"} == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_without_them_only_what_is_known_fails(tmp_path, seed):
    assert len(outcomes(tmp_path, "torch", seed)) == len(CASES)
    command = [ASSAY, "report", tmp_path / "run", "--against=known", "--json", "--fail-on=none"]
    report = subprocess.check_output([*command, "--every-failure"], text=True)
    against = json.loads(report)["against"]
    assert against["new"] + against["grown"] == []
