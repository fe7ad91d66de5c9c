"""Distributions that random APIs are compared with.

Two draws never agree element by element. The reference of a random API therefore returns the distribution of
the result, with parameters that are tensors or numbers; `src/measure/draw_distribution.h` has the tests.
`shape` and `dtype` are those of the result.

    @api("paddle.nn.functional.dropout")
    def dropout(x, p=0.5, …):
        return kept(x / (1 - p), share=1 - p)

"""

from typing import Any, NamedTuple


class Distribution(NamedTuple):
    """A distribution. `kind` is the name of a Distribution in C++; `parameters` are numbers or tensors of the
    result's shape."""

    kind: str
    parameters: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: Any


def kept(values: Any, share: float, groups: Any = 0) -> Distribution:
    """Each element is that of `values` with probability `share`, else 0.

    Elements with the same number in `groups`, from 0 on, are dropped together; 0 means that every element is
    independent. The gradient with respect to `values` has the same distribution.
    """
    return Distribution("kept", (values, share, groups), tuple(values.shape), values.dtype)


def either(values: Any, others: Any, share: float, groups: Any = 0) -> Distribution:
    """Each element is that of `values` with probability `share`, else that of `others`."""
    return Distribution("either", (values, others, share, groups), tuple(values.shape), values.dtype)


def anything(shape: Any, dtype: Any) -> Distribution:
    """Uninitialised memory: only shape and dtype are compared."""
    return Distribution("anything", (), tuple(shape), dtype)


def uniform_draw(low: Any, high: Any, shape: Any, dtype: Any) -> Distribution:
    """Uniform over [low, high)."""
    return Distribution("uniform", (low, high), tuple(shape), dtype)


def normal_draw(mean: Any, std: Any, shape: Any, dtype: Any) -> Distribution:
    """Normal with this mean and standard deviation."""
    return Distribution("normal", (mean, std), tuple(shape), dtype)


def bernoulli_draw(p: Any, shape: Any, dtype: Any) -> Distribution:
    """1 with probability p, else 0."""
    return Distribution("bernoulli", (p,), tuple(shape), dtype)


def integer_draw(low: Any, high: Any, shape: Any, dtype: Any) -> Distribution:
    """Uniform over the integers in [low, high)."""
    return Distribution("integers", (low, high), tuple(shape), dtype)


def exponential_draw(rate: Any, shape: Any, dtype: Any) -> Distribution:
    """Exponential with this rate."""
    return Distribution("exponential", (rate,), tuple(shape), dtype)


def poisson_draw(rate: Any, shape: Any, dtype: Any) -> Distribution:
    """Poisson with this rate."""
    return Distribution("poisson", (rate,), tuple(shape), dtype)


def geometric_draw(p: Any, shape: Any, dtype: Any) -> Distribution:
    """The number of trials up to and including the first success: 1, 2, …"""
    return Distribution("geometric", (p,), tuple(shape), dtype)


def log_normal_draw(mean: Any, std: Any, shape: Any, dtype: Any) -> Distribution:
    """The exponential of a normal draw with this mean and standard deviation."""
    return Distribution("log_normal", (mean, std), tuple(shape), dtype)


def cauchy_draw(location: Any, scale: Any, shape: Any, dtype: Any) -> Distribution:
    """Cauchy with this location and scale."""
    return Distribution("cauchy", (location, scale), tuple(shape), dtype)


def gamma_draw(concentration: Any, rate: Any, shape: Any, dtype: Any) -> Distribution:
    """Gamma with this concentration and rate."""
    return Distribution("gamma", (concentration, rate), tuple(shape), dtype)


def binomial_draw(trials: Any, p: Any, shape: Any, dtype: Any) -> Distribution:
    """The number of successes in `trials` trials with probability p."""
    return Distribution("binomial", (trials, p), tuple(shape), dtype)


def permutation(extent: int, dtype: Any) -> Distribution:
    """0 … extent - 1 in random order."""
    return Distribution("permutation", (extent,), (extent,), dtype)


def categorical_draw(weights: Any, shape: Any, dtype: Any, replacement: bool) -> Distribution:
    """Indices of the last axis of `weights`, drawn with these weights. Without replacement, each index occurs
    at most once in a row."""
    return Distribution("categorical", (weights, weights.shape[-1], replacement), tuple(shape), dtype)
