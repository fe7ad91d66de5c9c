"""Gradients of the references against central differences, in PyTorch's Python."""

import pathlib

import pytest
from engine import passes_in_torch

pytestmark = pytest.mark.slow

CHECKS = pathlib.Path(__file__).with_name("gradient_checks.py")


def test_references_have_the_gradients_of_their_results():
    passes_in_torch(CHECKS)
