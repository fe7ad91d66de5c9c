"""Factors of a matrix are right by what they promise, whatever their signs; wrong ones are seen.

test_residuals.py runs it in a lane's Python, which has NumPy.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay import residuals  # noqa: E402


class Tensor:
    """As much of a tensor as residuals ask for."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.dtype, self.shape = self.values.dtype, self.values.shape

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


def matrix(*shape, dtype="float32"):
    values = np.random.default_rng(1).uniform(-1, 1, shape)
    return values.astype(dtype)


def excess(found, name):
    """What is left over, in ulps of 1."""
    value = found[name]
    return float(value[0] - 1) / np.finfo(value.dtype).eps


def test_right_singular_vectors_have_any_sign():
    for dtype in ("float32", "float64", "complex64"):
        for shape in ((4, 4), (2, 7, 3), (3, 40, 60)):
            x = matrix(*shape, dtype=dtype)
            u, s, vh = np.linalg.svd(x, full_matrices=False)
            found = residuals.of_svd(Tensor(x), Tensor(-u), Tensor(s), Tensor(-vh))
            assert all(excess(found, name) < 6 for name in ("product", "columns of u", "rows of vh"))


def test_wrong_singular_vectors_are_seen():
    x = matrix(5, 3)
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    off = u.copy()
    off[2, 1] *= 1.001
    found = residuals.of_svd(Tensor(x), Tensor(off), Tensor(s), Tensor(vh))
    assert excess(found, "product") > 100 and excess(found, "columns of u") > 100
    # One column with another sign: orthonormal, and not a factor of x.
    off = u * np.asarray([1, -1, 1], "float32")
    found = residuals.of_svd(Tensor(x), Tensor(off), Tensor(s), Tensor(vh))
    assert excess(found, "product") > 100 and excess(found, "columns of u") < 6
    # Of fewer values than the matrix has the product is not promised.
    few = residuals.of_svd(Tensor(x), Tensor(u[:, :2]), Tensor(s[:2]), Tensor(vh[:2]))
    assert "product" not in few and excess(few, "rows of vh") < 6


def test_the_best_parts_of_a_matrix():
    x = matrix(7, 2) @ matrix(2, 9)  # of rank 2
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    names = "product", "core", "columns of u", "columns of v"

    def seen(u, s, v, whole=True):
        found = residuals.of_low_rank(residuals.array_of(Tensor(x)), Tensor(u), Tensor(s), Tensor(v), whole)
        return {name: excess(found, name) for name in names if name in found}

    three = -u[:, :3], s[:3], -vh[:3].T
    assert max(seen(*three).values()) < 6
    swapped = seen(three[0], three[1], three[2][:, [1, 0, 2]])
    assert swapped["product"] > 1000 and swapped["core"] > 1000 and swapped["columns of v"] < 6
    # Parts of a random basis, which are not the best ones, and what they are of the matrix.
    basis, _ = np.linalg.qr(matrix(7, 1))
    of_basis, values, rows = np.linalg.svd(basis.T @ x, full_matrices=False)
    poor = basis @ of_basis, values, rows.T
    assert max(seen(*poor, whole=False).values()) < 6 and seen(*poor)["product"] > 1000


def test_eigenvectors():
    x = matrix(6, 6)
    whole = residuals.triangle(Tensor(x), lower=True)
    values, vectors = np.linalg.eigh(x, "L")
    right = residuals.of_eigen(whole, Tensor(values), Tensor(-vectors), residuals.orthonormal)
    assert excess(right, "residual") < 6 and excess(right, "columns") < 6
    swapped = residuals.of_eigen(whole, Tensor(values[::-1]), Tensor(vectors), residuals.orthonormal)
    assert excess(swapped, "residual") > 1000
    other = residuals.triangle(Tensor(x), lower=False)
    wrong = residuals.of_eigen(other, Tensor(values), Tensor(vectors), residuals.orthonormal)
    assert excess(wrong, "residual") > 1000


def test_of_a_general_matrix_they_have_length_one():
    x = matrix(5, 5, dtype="float64")
    values, vectors = np.linalg.eig(x)
    right = residuals.of_eigen(x, Tensor(values), Tensor(vectors), residuals.unit_columns)
    assert excess(right, "residual") < 6 and excess(right, "columns") < 6
    long = residuals.of_eigen(x, Tensor(values), Tensor(2 * vectors), residuals.unit_columns)
    assert excess(long, "columns") > 1000


def test_nothing_is_left_of_nothing():
    empty = np.zeros((0, 4), "float32")
    found = residuals.of_svd(
        Tensor(empty), Tensor(np.zeros((0, 0), "float32")), Tensor(np.zeros(0, "float32")), Tensor(empty)
    )
    assert found["u"] == [0, 0] and excess(found, "columns of u") == 0


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name)
