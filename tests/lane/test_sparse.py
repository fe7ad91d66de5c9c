"""Sparse tensors: the places they hold, and their parts."""

import pytest
from assay.registry import Registry
from assay.results import flatten
from assay.sparse import LAYOUTS, Sparse, compressed, is_layout, places

SHAPES = [(5,), (8, 8), (3, 7, 2, 9), (1, 1), (1, 4, 4, 4, 4), (4, 0)]


def flat(held, shape):
    """Each place as one number."""
    numbers = [0] * len(held.taken)
    for extent, axis in zip(shape, held.indices, strict=False):
        assert all(0 <= coordinate < extent for coordinate in axis)
        numbers = [number * extent + at for number, at in zip(numbers, axis, strict=True)]
    return numbers


@pytest.mark.parametrize("shape", SHAPES)
def test_some_places_are_held_each_once_and_in_order(shape):
    held = places(shape, 0, "coo")
    numbers = flat(held, shape)
    size = 1
    for extent in shape:
        size *= extent
    assert numbers == sorted(set(numbers)) == held.taken
    assert bool(numbers) == bool(size) and (size < 10 or len(numbers) < size)


def test_two_tensors_of_a_case_share_some_places_and_not_all():
    first, second = (set(flat(places((8, 8), index, "coo"), (8, 8))) for index in (0, 1))
    assert first & second and first - second and second - first


def test_a_hybrid_one_holds_whole_rows_of_the_last_axis():
    held = places((2, 4, 3), 0, "hybrid")
    assert len(held.indices) == 2 and held.rows == 8 and held.row == (3,) and max(held.taken) < 8


def test_an_uncoalesced_one_is_unsorted_and_holds_places_twice():
    held = places((8, 8), 0, "uncoalesced")
    numbers = flat(held, (8, 8))
    assert len(numbers) > len(set(numbers)) and numbers != sorted(numbers)
    assert held.taken != numbers  # two values of one place differ


def test_large_tensors_hold_less():
    held = places((1358, 1358), 0, "coo")
    assert len(held.taken) < 1358 * 1358 / 25


def test_rows_are_compressed_for_each_matrix_of_a_batch():
    assert compressed([[0, 0, 2], [1, 3, 0]], (3, 4)) == ([0, 2, 2, 3], [1, 3, 0])
    batch = [[0, 1, 1], [1, 0, 1], [2, 0, 1]]
    assert compressed(batch, (2, 2, 3)) == ([0, 0, 1, 0, 1, 2], [2, 0, 1])


def test_a_sparse_result_is_compared_by_its_parts():
    result = [Sparse("the indices", "the values", (2, 3))]
    leaves = dict(flatten(result, "", type(None), lambda _: None))
    assert leaves == {
        "[0].layout": "coo", "[0].indices": "the indices", "[0].values": "the values",
        "[0].shape[0]": 2, "[0].shape[1]": 3,
    }  # fmt: skip


def test_layouts_are_checked_when_they_are_registered():
    assert all(is_layout(layout) for layout in LAYOUTS)
    for wrong in ({"x": "cooo"}, {"y": "coo"}, {"x": ("coo", "y")}):
        with pytest.raises(ValueError, match="is not a layout"):
            Registry().api("paddle.f", layouts=wrong)(lambda x: x)
