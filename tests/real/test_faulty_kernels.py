"""Faults as kernels have them are found with default settings; without them the same cases pass."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
os.environ.pop("ASSAY_FRAMEWORK", None)

from faulty_kernels import CASES, FAULTS  # noqa: E402

from engine import run  # noqa: E402

# Paddle 3.3.1's own: docs/findings.md.
OWN = {
    "paddle.nn.functional.log_softmax",
    "paddle.logcumsumexp",
    "paddle.sqrt",
    "paddle.nn.functional.rrelu",
}


def outcomes(folder, module=None):
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(CASES) + "\n")
    if module:
        setting = f'environment = ["ASSAY_FRAMEWORK_MODULE={module}", "PYTHONPATH={FOLDER}"]\n'
        tables = "".join(f"[frameworks.{name}]\n{setting}" for name in ("paddle", "torch"))
        (folder / "assay.toml").write_text("version = 1\n" + tables)
    return {case.split("(")[0]: outcome for case, outcome in run(folder, corpus).items()}


def test_every_planted_fault_is_found(tmp_path):
    assert len(FAULTS) == len(CASES) >= 60
    assert outcomes(tmp_path, "faulty_kernels") == dict.fromkeys(FAULTS, "mismatch")


def test_without_them_only_paddles_own_are(tmp_path):
    found = outcomes(tmp_path)
    assert {name for name, outcome in found.items() if outcome != "pass"} <= OWN
