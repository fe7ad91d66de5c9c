"""Large inputs that both lanes have in common."""

import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]

from engine import findings, outcomes_by_api, run  # noqa: E402
from mapped_framework import CASES  # noqa: E402


def test_large_inputs_are_made_once_and_what_writes_into_one_is_found(tmp_path):
    """The wrapped frameworks raise where an input lies elsewhere than it should."""
    found = outcomes_by_api(tmp_path, CASES, "mapped_framework")
    assert found == {
        "paddle.any": "pass", "paddle.all": "pass", "paddle.neg": "pass", "paddle.sum": "mismatch"
    }  # fmt: skip
    (finding,) = findings(tmp_path)
    assert "input" in str(finding), finding


@pytest.mark.slow
def test_inputs_beyond_the_machine_s_memory_are_refused_before_they_fill_it(tmp_path):
    """Two that each fit, so that no allocator refuses them; 5 s would not do to fill them."""
    with open("/proc/meminfo") as facts:
        total = int(next(facts).split()[1]) * 1024
    tensor = f'Tensor([{total * 3 // 4 // 4}], "float32")'
    corpus = tmp_path / "cases.txt"
    corpus.write_text(f"paddle.allclose({tensor}, {tensor})\n")
    assert list(run(tmp_path, corpus, "--timeout=5").values()) == ["oom"]
