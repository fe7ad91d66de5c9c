"""What a Gumbel softmax promises of its draw: softmax((x + g) / temperature).

There g is a draw of Gumbel's law for each x. The logarithms of two elements times the temperature are x + g
each, but for what both have in common. So their difference is a draw of the logistic law around that of the
x, whose distribution function makes it uniform. The largest element is each with the probability that
softmax(x) gives it, whatever the temperature.
"""

from typing import Any

from assay import laws
from assay.reference import torch
from assay.residuals import array_of, shape_of

try:
    import numpy as np
except ModuleNotFoundError:  # the tables are read without frameworks as well, and nothing is called there
    np: Any = None

# Logarithms are no farther apart: e^-60 and its digits are in the range of float32, and Paddle clamps at 64.
_APART = 60.0
# So far apart two draws are once in 10^9.
_DRAWN = 20.0


def soft(temperature: float, dtype: str, extent: int) -> bool:
    """Whether draws can be told from the elements: there are two of them, with digits and range enough."""
    enough = _DRAWN <= _APART * temperature <= 1e5
    return extent > 1 and enough and dtype.rsplit(".", 1)[-1] in ("float32", "float64")


def shown(x: Any, y: Any, temperature: float, hard: bool, axis: int) -> Any:
    """Of a draw y: its shape, where the largest are, and either that they are 1 and the others 0, or the sums
    and the differences as draws of a uniform law."""
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
    """Each second element less the one before; no element is in two of them."""
    even = values.shape[-1] // 2 * 2
    return values[..., 1:even:2] - values[..., 0:even:2]


def promised(x: Any, temperature: float, hard: bool, axis: int) -> Any:
    """The same of the law."""
    found = {"shape": shape_of(x), "dtype": x.dtype}
    if not x.numel():
        return found
    rows = x.movedim(axis, -1)
    of_rows = tuple(rows.shape[:-1])
    found["largest"] = laws.categorical_draw(torch.softmax(rows, -1), (*of_rows, 1), torch.int64, True)
    if hard:
        one_hot = torch.zeros(rows.shape, dtype=torch.float64)
        one_hot[..., -1] = 1
        return found | {"sorted": one_hot}
    found["sums"] = torch.ones(*of_rows, 1)
    if not soft(temperature, str(x.dtype), rows.shape[-1]):
        return found
    return found | {"draws": laws.uniform_draw(0.0, 1.0, (*of_rows, rows.shape[-1] // 2), torch.float64)}
