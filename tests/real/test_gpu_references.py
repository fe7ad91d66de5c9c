"""References on a GPU, in PyTorch's Python, where none is."""

import pathlib

import pytest
from engine import passes_in_torch

CHECKS = pathlib.Path(__file__).with_name("gpu_reference_checks.py")


@pytest.mark.slow
def test_what_gpus_do_otherwise_is_computed_on_the_cpu():
    passes_in_torch(CHECKS)
