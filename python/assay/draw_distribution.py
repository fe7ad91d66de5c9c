"""Distributions that random APIs are compared with.

Two draws never agree element by element. The reference of a random API therefore returns the distribution of
the result, with parameters that are tensors or numbers; `src/measure/draw_distribution.h` has the tests.
`shape` and `dtype` are those of the result.

    @api("paddle.nn.functional.dropout")
    def dropout(x, p=0.5, …):
        return kept(x / (1 - p), share=1 - p)

"""

from collections.abc import Callable
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


def _of(kind: str, *names: str) -> Callable[..., Distribution]:
    """A function of these parameters, the shape and the dtype, which makes a distribution of this kind."""
    every = (*names, "shape", "dtype")

    def draw(*args: Any, **named: Any) -> Distribution:
        given = dict(zip(every, args, strict=False)) | named
        if len(args) + len(named) != len(every) or given.keys() != {*every}:
            raise TypeError(f"{kind} takes {', '.join(every)}")
        return Distribution(kind, tuple(given[name] for name in names), tuple(given["shape"]), given["dtype"])

    return draw


uniform_draw = _of("uniform", "low", "high")  # over [low, high)
normal_draw = _of("normal", "mean", "std")
bernoulli_draw = _of("bernoulli", "p")  # 1 with probability p, else 0
integer_draw = _of("integers", "low", "high")  # uniform over those in [low, high)
exponential_draw = _of("exponential", "rate")
poisson_draw = _of("poisson", "rate")
geometric_draw = _of("geometric", "p")  # the number of trials up to the first success: 1, 2, …
log_normal_draw = _of("log_normal", "mean", "std")  # the exponential of a normal draw with these
cauchy_draw = _of("cauchy", "location", "scale")
gamma_draw = _of("gamma", "concentration", "rate")
binomial_draw = _of("binomial", "trials", "p")  # the number of successes


def permutation(extent: int, dtype: Any) -> Distribution:
    """0 … extent - 1 in random order."""
    return Distribution("permutation", (extent,), (extent,), dtype)


def categorical_draw(weights: Any, shape: Any, dtype: Any, replacement: bool) -> Distribution:
    """Indices of the last axis of `weights`, drawn with these weights. Without replacement, each index occurs
    at most once in a row."""
    return Distribution("categorical", (weights, weights.shape[-1], replacement), tuple(shape), dtype)
