"""A result taken apart."""

import math

import pytest
from assay.draw_distribution import kept
from assay.results import LONG, flatten, packed


class Tensor:
    def __init__(self, shape=(2,), dtype="float32"):
        self.shape, self.dtype = shape, dtype


def paths(value):
    return list(flatten(value, "", Tensor, lambda _: None))


def test_flatten_gives_every_leaf_its_path():
    a, b, c = Tensor(), Tensor(), Tensor()
    assert paths(a) == [("", a)]
    assert paths((a, [b, None], 5)) == [("[0]", a), ("[1][0]", b), ("[1][1]", None), ("[2]", 5)]
    assert paths({"x": a, "y": (b, c)}) == [(".x", a), (".y[0]", b), (".y[1]", c)]
    assert paths("text") == [("", "text")]


def test_lists_and_tuples_are_one_kind():
    a = Tensor()
    assert paths([a, 1]) == paths((a, 1))


def test_an_empty_sequence_is_not_nothing():
    assert paths([]) == [("", "empty sequence")]
    assert paths(([], 1)) == [("[0]", "empty sequence"), ("[1]", 1)]
    assert paths(()) != paths(None)


def test_a_distribution_is_a_leaf():
    distribution = kept(Tensor((2, 3)), 0.5, 6)
    assert paths([distribution]) == [("[0]", distribution)]


@pytest.mark.parametrize(
    ("number", "dtype"), [(7, "int64"), (0.5, "float64"), (True, "bool"), (1 + 2j, "complex128")]
)
def test_long_lists_of_numbers_are_arrays(number, dtype):
    numbers = packed([[[number] * 4, (number,) * 4]] * LONG)
    assert numbers.dtype == dtype and numbers.shape == (LONG, 2, 4)
    whole = [number.real, number.imag] if dtype == "complex128" else [number]
    assert numbers.values.tolist() == whole * (LONG * 8)
    assert paths(([[number] * LONG], 1)) == [("[0]", packed([[number] * LONG])), ("[1]", 1)]


def test_their_order_is_kept():
    assert packed([[i, -i] for i in range(LONG)]).values.tolist()[:6] == [0, 0, 1, -1, 2, -2]
    assert math.isnan(packed([math.nan, math.inf] * LONG).values[0])


@pytest.mark.parametrize(
    "value",
    [
        [1] * (LONG - 1),
        [[1, 2]] * LONG + [[1]],
        [[1, 2]] * LONG + [1],
        [[1, 2]] * LONG + [[]],
        [1] * LONG + [1.0],
        [1] * LONG + [True],
        [1] * LONG + [1 << 63],
        ["1"] * LONG,
        [[]] * LONG,
        [[], 1] * LONG,
        [Tensor()] * LONG,
    ],
)
def test_other_lists_are_not(value):
    assert packed(value) is None
