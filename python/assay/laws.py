"""Laws: what a random API promises of its result.

Two draws are never equal element by element, so the reference of a random API gives no draw: it
gives the law that the tested framework's draw must obey, with its parameters as tensors or numbers.
`src/measure/law.h` holds the tests. `shape` and `dtype` are those of the result.

    @api("paddle.nn.functional.dropout")
    def dropout(x, p=0.5, …):
        return kept(x / (1 - p), share=1 - p)
"""

from typing import Any, NamedTuple


class Law(NamedTuple):
    """`parameters` are numbers, or tensors of the result's shape. `kind` is LawKind's name in C++."""

    kind: str
    parameters: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: Any


def kept(values: Any, share: float, groups: Any = 0) -> Law:
    """Every element is either 0 or that of `values`; each is kept with probability `share`.

    Where whole rows or channels fall together, `groups` gives every element the number of its group,
    from 0 on; 0 means that each falls by itself. The gradient through `values` obeys the same law.
    """
    return Law("kept", (values, share, groups), tuple(values.shape), values.dtype)


def either(values: Any, others: Any, share: float, groups: Any = 0) -> Law:
    """Every element is that of `values`, with probability `share`, or that of `others`; `kept` is the case in
    which the others are 0."""
    return Law("either", (values, others, share, groups), tuple(values.shape), values.dtype)


def anything(shape: Any, dtype: Any) -> Law:
    """Uninitialised memory: only shape and dtype are promised."""
    return Law("anything", (), tuple(shape), dtype)


def uniform_draw(low: Any, high: Any, shape: Any, dtype: Any) -> Law:
    return Law("uniform", (low, high), tuple(shape), dtype)


def normal_draw(mean: Any, std: Any, shape: Any, dtype: Any) -> Law:
    return Law("normal", (mean, std), tuple(shape), dtype)


def bernoulli_draw(p: Any, shape: Any, dtype: Any) -> Law:
    return Law("bernoulli", (p,), tuple(shape), dtype)


def integer_draw(low: Any, high: Any, shape: Any, dtype: Any) -> Law:
    """Whole numbers in [low, high)."""
    return Law("integers", (low, high), tuple(shape), dtype)


def exponential_draw(rate: Any, shape: Any, dtype: Any) -> Law:
    return Law("exponential", (rate,), tuple(shape), dtype)


def poisson_draw(rate: Any, shape: Any, dtype: Any) -> Law:
    return Law("poisson", (rate,), tuple(shape), dtype)


def geometric_draw(p: Any, shape: Any, dtype: Any) -> Law:
    """Number of trials up to and with the first success: 1, 2, …"""
    return Law("geometric", (p,), tuple(shape), dtype)


def log_normal_draw(mean: Any, std: Any, shape: Any, dtype: Any) -> Law:
    """exp of a normal draw with this mean and std."""
    return Law("log_normal", (mean, std), tuple(shape), dtype)


def cauchy_draw(location: Any, scale: Any, shape: Any, dtype: Any) -> Law:
    return Law("cauchy", (location, scale), tuple(shape), dtype)


def gamma_draw(concentration: Any, rate: Any, shape: Any, dtype: Any) -> Law:
    return Law("gamma", (concentration, rate), tuple(shape), dtype)


def binomial_draw(trials: Any, p: Any, shape: Any, dtype: Any) -> Law:
    return Law("binomial", (trials, p), tuple(shape), dtype)


def permutation(extent: int, dtype: Any) -> Law:
    """0 … extent - 1, each once, in any order."""
    return Law("permutation", (extent,), (extent,), dtype)


def categorical_draw(weights: Any, shape: Any, dtype: Any, replacement: bool) -> Law:
    """Rows of draws from 0, 1, …, as often as the last axis of `weights` says; without replacement each at
    most once in a row."""
    return Law("categorical", (weights, weights.shape[-1], replacement), tuple(shape), dtype)
