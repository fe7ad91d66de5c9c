"""The distribution of a Gumbel softmax: softmax((x + g) / temperature), where g is a Gumbel draw for each x.

The logarithm of an element times the temperature is x + g, up to a constant of its row. The difference of two
elements is therefore a logistic draw around the difference of their x, and its distribution function maps it
to a uniform draw. The largest element is at each position with the probability softmax(x), for every
temperature.
"""

from typing import Any

from assay import draw_distribution
from assay.orders import np
from assay.reference import torch
from assay.residuals import array_of, shape_of

# The largest difference of two logarithms: float32 represents e^-60 precisely, and Paddle clamps at 64.
_APART = 60.0
# Two draws differ by more than this with probability 10^-9.
_DRAWN = 20.0


def soft(temperature: float, dtype: str, extent: int) -> bool:
    """Whether draws can be recovered from the elements: at least two of them, with enough precision and
    range."""
    enough = _DRAWN <= _APART * temperature <= 1e5
    return extent > 1 and enough and dtype.rsplit(".", 1)[-1] in ("float32", "float64")


def shown(x: Any, y: Any, temperature: float, hard: bool, axis: int) -> Any:
    """What is compared of a draw y: its shape, the positions of the largest elements, and either the sorted
    elements (hard) or row sums and uniform draws."""
    values, logits = (np.moveaxis(array_of(tensor), axis, -1) for tensor in (y, x))
    found = {"shape": shape_of(y), "dtype": y.dtype}
    if not values.size:
        return found
    found["largest"] = values.argmax(-1)[..., None]
    if hard:
        return found | {"sorted": np.sort(values, -1)}
    found["sums"] = values.sum(-1, keepdims=True).astype("float32")
    if not soft(temperature, str(y.dtype), values.shape[-1]):
        return found
    smallest = np.finfo("float64").tiny
    apart = temperature * _pairs(np.log(np.maximum(values, smallest))) - _pairs(logits)
    drawn = 1 / (1 + np.exp(-np.clip(apart, -_DRAWN, _DRAWN)))
    return found | {"draws": drawn}


def _pairs(values: Any) -> Any:
    """Differences of disjoint pairs of neighbours."""
    even = values.shape[-1] // 2 * 2
    return values[..., 1:even:2] - values[..., 0:even:2]


def promised(x: Any, temperature: float, hard: bool, axis: int) -> Any:
    """What `shown` is compared with: distributions and constants."""
    found = {"shape": shape_of(x), "dtype": x.dtype}
    if not x.numel():
        return found
    rows = x.movedim(axis, -1)
    of_rows = tuple(rows.shape[:-1])
    found["largest"] = draw_distribution.categorical_draw(
        torch.softmax(rows, -1), (*of_rows, 1), torch.int64, True
    )
    if hard:
        one_hot = torch.zeros(rows.shape, dtype=torch.float64)
        one_hot[..., -1] = 1
        return found | {"sorted": one_hot}
    found["sums"] = torch.ones(*of_rows, 1)
    if not soft(temperature, str(x.dtype), rows.shape[-1]):
        return found
    return found | {
        "draws": draw_distribution.uniform_draw(0.0, 1.0, (*of_rows, rows.shape[-1] // 2), torch.float64)
    }
