"""Value rules: from data and functions of the call to the numbers that src/fill takes."""

import math

import pytest
from assay import rules
from assay.apis import detection, gather_scatter
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


@pytest.mark.parametrize(("extents", "rows"), [([5, 4, 3], 60), ([3, 7, 2], 25), ([6], 6), ([9, 9], 30_000)])
def test_rows_of_coordinates_visit_every_position_before_one_recurs(extents, rows):
    rule = gather_scatter._coordinates([*extents, 11], TensorSpec((rows, len(extents)), "int64", 0))
    values = iter(rule.values)
    places = list(zip(*[values] * len(extents), strict=True))
    assert len(places) == rows
    assert all(0 <= at < extent for place in places for at, extent in zip(place, extents, strict=True))
    assert len(set(places)) == min(rows, math.prod(extents))


@pytest.mark.parametrize("size", [4, 16, 92, 4 * 1001])
def test_anchors_of_a_group_overlap_by_known_parts_and_no_others(size):
    anchors = TensorSpec((size // 4, 4), "float32", 0)
    values = iter(detection._groups(anchors).values)
    boxes = list(zip(*[values] * 4, strict=True))
    assert len(boxes) == size // 4
    height, width = detection._image(anchors, TensorSpec((1, 2), "float32", 1)).values
    for first in range(0, len(boxes), 4):
        left, top, right, bottom = boxes[first]
        side = right - left
        assert bottom - top == side
        for box, share in zip(boxes[first : first + 4], (0, 0, 0.25, 0.5), strict=False):
            assert box == (left + share * side, top, right + share * side, bottom)
        # Within a cell of its own.
        cell = left // 64, top // 64
        assert all((x // 64, y // 64) == cell for x, y, *_ in boxes[first : first + 4])
    cells = [(box[0] // 64, box[1] // 64) for box in boxes[::4]]
    assert len(set(cells)) == len(cells)
    assert max(box[3] for box in boxes) < height
    assert max(box[2] for box in boxes) > width or len(cells) < 4
