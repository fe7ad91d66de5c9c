"""Consistency of sorted results and selections with NaN. test_orders.py runs it in PyTorch's Python."""

import pathlib
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay import orders  # noqa: E402

NAN = float("nan")
INF = float("inf")
X = np.array([[3.0, NAN, 1.0, 2.0], [4.0, INF, -INF, INF]])


def facts(**results):
    found = orders.shown(
        X,
        1,
        **{name: np.array(value) for name, value in results.items() if name != "more"},
        **results.get("more", {}),
    )
    return found


def equal(left, right):
    return left.keys() == right.keys() and all(
        np.array_equal(left[key], right[key], equal_nan=np.asarray(left[key]).dtype.kind == "f")
        for key in left
    )


SORTED = {"more": {"whole": True}}


def test_nan_may_stand_anywhere():
    last = facts(values=[[1, 2, 3, NAN], [-INF, 4, INF, INF]], **SORTED)
    assert last["sorted apart from NaN"]
    assert equal(last, facts(values=[[NAN, 1, 2, 3], [-INF, 4, INF, INF]], **SORTED))
    assert equal(last, facts(values=[[1, NAN, 2, 3], [-INF, 4, INF, INF]], **SORTED))


def test_a_lost_element_and_a_wrong_order_show():
    right = facts(values=[[1, 2, 3, NAN], [-INF, 4, INF, INF]], **SORTED)
    for row in ([1, 2, NAN, NAN], [2, 1, 3, NAN], [1, 2, 2, NAN], [1, 2, 3, 3]):
        assert not equal(right, facts(values=[row, [-INF, 4, INF, INF]], **SORTED)), row


def test_equal_elements_may_change_places():
    right = facts(index=[[2, 3, 0, 1], [2, 0, 1, 3]], **SORTED)
    assert right["indices occur once"] and right["sorted apart from NaN"]
    assert equal(right, facts(index=[[1, 2, 3, 0], [2, 0, 3, 1]], **SORTED))
    assert not equal(right, facts(index=[[2, 3, 0, 0], [2, 0, 1, 3]], **SORTED))
    assert not equal(right, facts(index=[[2, 3, 0, 1], [0, 2, 1, 3]], **SORTED))
    assert not equal(right, facts(index=[[2, 3, 0, 9], [2, 0, 1, 3]], **SORTED))


def test_values_and_indices_belong_together():
    more = {"more": {"descending": True}}
    right = facts(values=[[3, 2], [INF, INF]], index=[[0, 3], [1, 3]], **more)
    assert right["values are those at the indices"]
    # Whether NaN is the largest is not specified.
    assert equal(right, facts(values=[[NAN, 3], [INF, INF]], index=[[1, 0], [3, 1]], **more))
    assert not equal(right, facts(values=[[3, 2], [INF, INF]], index=[[0, 2], [1, 3]], **more))
    assert not equal(right, facts(values=[[3, 2], [INF, 4]], index=[[0, 3], [1, 0]], **more))


def test_a_most_frequent_number_has_no_more_frequent_one():
    x = np.array([[1.0, NAN, 2.0, 2.0], [NAN, 5.0, NAN, 5.0]])
    holds = "no number is more frequent"
    found = lambda *pairs: orders.most_frequent(  # noqa: E731
        x, 1, *(np.array(each) for each in zip(*pairs, strict=True))
    )
    right = found((2.0, 3), (5.0, 1))
    assert right[holds] and right["values are those at the indices"]
    assert equal(right, found((2.0, 2), (NAN, 0)))  # any of the equal elements, or NaN
    assert not found((1.0, 0), (5.0, 1))[holds]
    assert not found((2.0, 0), (5.0, 1))["values are those at the indices"]


def test_an_extreme_is_at_its_index():
    index = np.array([1, 1])
    right = orders.extreme(X, 1, index, torch.tensor([NAN, INF]))
    assert right["the extreme is there"]
    # A framework that ignores NaN in both is consistent; one that does in one of them is not.
    assert equal(right, orders.extreme(X, 1, np.array([0, 3]), torch.tensor([3, INF])))
    assert not equal(right, orders.extreme(X, 1, np.array([0, 1]), torch.tensor([NAN, INF])))
    kept = orders.extreme(X, 1, index[:, None], torch.tensor([[NAN], [INF]]))
    assert equal(right, kept)


def test_finite_inputs_are_compared_as_they_are():
    assert orders.special(torch.tensor([1.0, 2.0])) is None
    assert orders.special(torch.tensor([1, 2])) is None
    assert orders.special(torch.tensor([1.0, INF], dtype=torch.bfloat16)).tolist() == [1.0, INF]


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
