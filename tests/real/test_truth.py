"""The parts of the truth that are not a float64 evaluation, in PyTorch's Python."""

import pathlib

import pytest
from engine import passes_in_torch

pytestmark = pytest.mark.slow

CHECKS = pathlib.Path(__file__).with_name("truth_checks.py")


def test_what_float64_cannot_show():
    passes_in_torch(CHECKS)
