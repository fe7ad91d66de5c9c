"""Simulated clusters of known faults: the right culprit comes first, with its true gain."""

import subprocess
import sys

import pytest
from tree import ASSAY, ROOT

SIMULATION = ROOT / "bench" / "timeline" / "simulated_clusters.py"


def simulate(*options: str) -> None:
    command = [sys.executable, str(SIMULATION), str(ASSAY), "--verbose", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_small_clusters():
    simulate("--first", "64", "--clusters", "16", "--most-ranks", "32")


@pytest.mark.slow
def test_two_hundred_clusters_of_4_to_512_ranks():
    simulate("--clusters", "200")
