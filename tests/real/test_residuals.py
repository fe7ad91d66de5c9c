"""What decompositions are judged by, in a Python with NumPy; and that real ones pass by it."""

import pathlib

import pytest
from engine import passes_in_torch, run

pytestmark = pytest.mark.slow

CHECKS = pathlib.Path(__file__).with_name("residual_checks.py")
CASES = """\
paddle.linalg.svd(Tensor([5, 3], "float32"))
paddle.linalg.svd(Tensor([2, 3, 5], "float64"), full_matrices=True)
paddle.linalg.svd(Tensor([100, 80], "float32"))
paddle.linalg.svd(Tensor([0, 4], "float32"))
paddle.linalg.eigh(Tensor([5, 5], "float32"))
paddle.linalg.eigh(Tensor([2, 6, 6], "complex128"), UPLO="U")
paddle.linalg.eig(Tensor([3, 3], "float64"))
paddle.linalg.eig(Tensor([2, 20, 20], "float32"))
paddle.linalg.inv(x=Tensor([4, 4], "float32"))
paddle.linalg.matrix_power(Tensor([2, 3, 3], "float32"), -2)
paddle.linalg.matrix_power(Tensor([3, 3], "float64"), 9)
"""


def test_right_factors_pass_and_wrong_ones_do_not():
    passes_in_torch(CHECKS)


def test_real_decompositions_pass(tmp_path):
    corpus = tmp_path / "cases.txt"
    corpus.write_text(CASES)
    found = run(tmp_path, corpus)
    assert len(found) == len(CASES.splitlines()) and set(found.values()) == {"pass"}
