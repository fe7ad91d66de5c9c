"""Sorted results with NaN and infinities: what no documentation promises is judged by consistency.

Where NaN stands in an order is not specified, nor which of several equal elements is selected. Still, values
and indices belong together, an index occurs once, the values are a permutation of the input, and apart from
NaN they are sorted. The same function is applied to both frameworks' results.
"""

from typing import Any

from assay.shared import MOST_ELEMENTS

try:
    import numpy as np
except ModuleNotFoundError:  # the tables load without frameworks; nothing is called then
    np: Any = None


def _widened(tensor: Any) -> Any:
    """A tensor of either framework; half precision as float32."""
    if "float16" not in str(tensor.dtype):
        return tensor
    return tensor.float() if hasattr(tensor, "float") else tensor.astype("float32")


def array_of(tensor: Any) -> Any:
    """A tensor of either framework as an array; half precision as float32."""
    return np.asarray(_widened(tensor).detach().cpu().numpy())


def special(x: Any) -> Any:
    """The input as an array if an element is not finite, else None: then nothing is unspecified."""
    if "float" not in str(x.dtype) or not 0 < int(np.prod(x.shape)) <= MOST_ELEMENTS:
        return None
    found = array_of(x)
    return None if np.isfinite(found).all() else found


def rows_of(array: Any, axis: int | None) -> Any:
    """A row for each result along an axis; one row without an axis."""
    if axis is None or not array.ndim:
        return array.reshape(1, -1)
    last = np.moveaxis(array, axis, -1)
    return last.reshape(-1, last.shape[-1])


def selected_rows(result: Any, x: Any, axis: int | None) -> Any:
    """A result's row for each row of x. A single selection may have lost its axis."""
    count = len(rows_of(x, axis))
    if axis is None or result.ndim < x.ndim:
        return result.reshape(count, -1)
    return rows_of(result, axis)


def first_equal(rows: Any, found: Any) -> Any:
    """For each value of each row the first index in the input's row with an equal value."""
    same = (rows[:, None, :] == found[:, :, None]) | (
        np.isnan(rows)[:, None, :] & np.isnan(found)[:, :, None]
    )
    return same.argmax(-1)


def in_order(values: Any, index: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """Values and indices of a selection, sorted by value along an axis. The values keep their gradient."""
    if not values.ndim:
        return values, index
    order = _widened(values.detach()).argsort(axis, descending)
    take = "take_along_axis" if hasattr(values, "take_along_axis") else "take_along_dim"
    return getattr(values, take)(order, axis), getattr(index, take)(order, axis)


def shown(
    x: Any,
    axis: int | None,
    values: Any = None,
    index: Any = None,
    descending: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    """What can be compared of a selection's values and indices along an axis; arrays, one row for each row of
    the input array x. `whole`: the results are a permutation of each row."""
    rows = rows_of(x, axis)
    parts: dict[str, Any] = {}
    missing = np.isnan(rows).any(-1, keepdims=True)
    if index is not None:
        at = selected_rows(index, x, axis).astype(np.int64)
        parts["indices are valid"] = bool(((at >= 0) & (at < rows.shape[-1])).all())
        if not parts["indices are valid"]:
            return parts
        parts["indices occur once"] = bool((np.diff(np.sort(at, -1), axis=-1) > 0).all())
        pointed = np.take_along_axis(rows, at, -1)
        if values is None:
            values = pointed
        else:
            values = selected_rows(values, x, axis)
            parts["values are those at the indices"] = np.array_equal(values, pointed, equal_nan=True)
        parts["index"] = np.where(missing, 0, first_equal(rows, pointed))
    else:
        values = selected_rows(values, x, axis)
    # NaN comes last, in the order in which the others stand.
    ordered = np.take_along_axis(values, np.argsort(np.isnan(values), -1, kind="stable"), -1)
    before, after = ordered[:, :-1], ordered[:, 1:]
    away = before < after if descending else before > after
    parts["sorted apart from NaN"] = not away.any()
    ordered = np.where(np.isnan(ordered), np.nan, ordered)  # one NaN for all signs and payloads
    parts["values"] = ordered if whole else np.where(missing, 0, ordered)
    return parts


def most_frequent(x: Any, axis: int | None, values: Any, index: Any) -> dict[str, Any]:
    """What can be compared of the most frequent value of each row: it stands at its index, and no number is
    more frequent. It may be NaN, which is equal to itself for some."""
    parts = shown(x, axis, values, index)
    rows = rows_of(x, axis)
    if "index" not in parts:
        return parts
    counts = (rows[:, :, None] == rows[:, None, :]).sum(-1)
    chosen = np.take_along_axis(counts, selected_rows(index, x, axis).astype(np.int64), -1)
    enough = (chosen == counts.max(-1, keepdims=True)) | np.isnan(selected_rows(values, x, axis))
    missing = np.isnan(rows).any(-1, keepdims=True)  # elsewhere the values themselves are compared
    return parts | {"index": 0, "no number is more frequent": bool((enough | ~missing).all())}


def extreme(x: Any, axis: int | None, index: Any, value: Any) -> dict[str, Any]:
    """Whether the element at an extreme's index is the framework's own extreme value, which may be NaN."""
    found = shown(x, axis, index=index)
    if "index" not in found:
        return found
    pointed = np.take_along_axis(rows_of(x, axis), selected_rows(index, x, axis).astype(np.int64), -1)
    own = array_of(value).reshape(pointed.shape)
    return {"index": found["index"], "the extreme is there": np.array_equal(pointed, own, equal_nan=True)}
