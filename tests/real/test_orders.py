"""What is judged of sorted results with NaN, in PyTorch's Python."""

import pathlib

import pytest
from engine import passes_in_torch

pytestmark = pytest.mark.slow

CHECKS = pathlib.Path(__file__).with_name("order_checks.py")


def test_consistency_of_orders():
    passes_in_torch(CHECKS)
