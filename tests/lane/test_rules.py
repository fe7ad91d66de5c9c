"""Value rules: from data and functions of the call to the numbers that src/fill takes."""

import pytest
from assay import rules
from assay.rules import Fill, Literal, ask, resolve
from assay.spec import TensorSpec

SQUARE = TensorSpec((2, 3, 3), "float32", 0)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (rules.uniform(), Fill(0, -0.5, 0.5, 0)),
        (rules.positive(), Fill(0, 0.1, 1.1, 0)),
        (rules.integers(2, 9), Fill(12, 2.0, 9.0, 18)),
        (rules.distinct(0, 1), Fill(2, 0.0, 1.0, 18)),  # all 18 elements differ
        (rules.increasing(0, 1), Fill(3, 0.0, 1.0, 3)),
        (rules.symmetric(), Fill(4, -0.5, 0.5, 3)),
        (rules.positive_definite(), Fill(5, -0.5, 0.5, 3)),
        (rules.boxes(0, 64), Fill(6, 0.0, 64.0, 0)),
        (rules.constant(7), Fill(7, 7.0, 7.0, 0)),
    ],
)
def test_every_kind(rule, expected):
    assert resolve(rule, {}, SQUARE) == expected


def test_a_scalar_has_rows_of_one():
    assert resolve(rules.increasing(), {}, TensorSpec((), "float32", 0)).extent == 1


def test_bounds_are_functions_of_the_call():
    rule = rules.integers(0, lambda x, axis=0: x.shape[axis])
    x = TensorSpec((4, 6), "float32", 0)
    assert resolve(rule, {"x": x, "index": SQUARE}, SQUARE).high == 4.0
    assert resolve(rule, {"x": x, "axis": 1}, SQUARE).high == 6.0


def test_this_is_the_tensor_that_is_filled():
    assert resolve(rules.integers(0, lambda this: this.size), {}, SQUARE).high == 18.0
    assert resolve(lambda this: rules.constant(this.ndim), {}, SQUARE) == Fill(7, 3.0, 3.0, 0)


def test_a_rule_may_choose_a_rule_or_the_default():
    def rule(x, y):
        return (lambda y: rules.uniform(0, y)) if x.dtype == "float16" else None

    half = TensorSpec((1,), "float16", 0)
    assert resolve(rule, {"x": half, "y": 3}, half) == Fill(0, 0.0, 3.0, 0)
    assert resolve(rule, {"x": SQUARE, "y": 3}, SQUARE) is None
    assert resolve(None, {}, SQUARE) is None


def test_literal_values_come_from_the_call():
    rule = rules.literal(lambda lengths, total=8: [total] * lengths.size)
    lengths = TensorSpec((2,), "int64", 0)
    assert resolve(rule, {"lengths": lengths, "other": 1}, lengths) == Literal([8, 8])
    assert resolve(rule, {"lengths": lengths, "total": 5}, lengths) == Literal([5, 5])
    assert resolve(Literal((1.0,)), {}, lengths) == Literal((1.0,))


def test_asking_without_what_is_needed_raises():
    with pytest.raises(TypeError):
        ask(lambda x, y: x, {"x": 1}, SQUARE)
