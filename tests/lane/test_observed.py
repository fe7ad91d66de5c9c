"""Tensors drawn by what a capture says of them."""

import math

import pytest
from assay.observed import Values, drawn
from assay.rules import Fill, Sample, integers, resolve
from assay.shared import DISTINCT, POSITIVE_DEFINITE, UNIFORM
from assay.spec import TensorSpec

SEEN = Values(-3.0, 88.0, 0, 0, 300, 1200)
REALS = TensorSpec((20, 30), "float32", 0)


def numbers(usual, spec, values, special=""):
    fill = drawn(usual, spec, values, 7, special)
    assert isinstance(fill, Sample) and len(fill.values) == spec.size
    return fill.values


def test_reals_fill_the_range_to_its_ends_with_small_numbers_and_zeros():
    found = numbers(None, REALS, SEEN)
    assert (min(found), max(found)) == (-3.0, 88.0)
    assert 0.15 < sum(each == 0 for each in found) / len(found) < 0.35  # a quarter
    assert sum(0 < abs(each) < 0.5 for each in found) > 20
    assert found == numbers(None, REALS, SEEN) != numbers(None, REALS._replace(index=1), SEEN)


def test_special_numbers_come_where_the_api_is_judged_with_them():
    seen = SEEN._replace(nan=12, inf=120)
    assert all(map(math.isfinite, numbers(None, REALS, seen)))
    assert sum(map(math.isnan, numbers(None, REALS, seen, "nan"))) == 6
    assert sum(each == -math.inf for each in numbers(None, REALS, seen, "infinity")) == 60


def test_slices_keep_their_scales_and_rows_their_order():
    found = numbers(None, REALS, SEEN._replace(min=-88.0, zero=0, axes=((80.0, 88.0), (0.01, 88.0))))
    largest = [max(abs(each) for each in found[column::30]) for column in range(30)]
    assert max(largest) / min(largest) > 100
    rows = numbers(None, REALS, SEEN._replace(sorted=True))
    assert all(list(rows[at : at + 30]) == sorted(rows[at : at + 30]) for at in range(0, 600, 30))


def test_whole_numbers_keep_bounds_and_distinctness():
    spec = TensorSpec((8,), "int64", 0)
    index = resolve(integers(0, 12), {}, spec)
    assert set(numbers(index, spec, Values(5, 40, 0, 0, 0, 8))) <= set(range(5, 12))
    assert len(set(numbers(None, spec, Values(-2, 9, 0, 0, 0, 8, distinct=1.0)))) == 8
    assert len(set(numbers(None, spec, Values(-2, 9, 0, 0, 0, 8, distinct=0.25)))) == 2


@pytest.mark.parametrize(
    "usual", [Fill(POSITIVE_DEFINITE, -0.5, 0.5, 30), Fill(UNIFORM, 0.0, 1.0, 0), Fill(DISTINCT, 0, 1, 600)]
)
def test_a_rule_that_a_range_cannot_keep_stays(usual):
    fill = drawn(usual, REALS, SEEN, 7, "")
    if usual.kind == UNIFORM:
        assert isinstance(fill, Sample)
    else:
        assert fill.kind == usual.kind
    assert drawn(usual, REALS, None, 7, "") == usual
