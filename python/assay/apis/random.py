"""Random draws. The references return the distribution of the result."""

from functools import reduce
from math import sqrt

from assay import draw_distribution
from assay.apis.creation import EXTENT
from assay.arguments import as_dtype, as_ints
from assay.reference import common_shape, torch
from assay.registry import api
from assay.rules import Literal, increasing, integers, positive, uniform
from assay.shorthand import LITERAL_LIMIT, PUBLIC, RANDOM, spread

SHARE = uniform(0.05, 0.95)  # probabilities away from 0 and 1


def _normal_dtype(mean, std):
    """float32, or a tensor's dtype; complex for a complex mean."""
    dtypes = [value.dtype for value in (mean, std) if isinstance(value, torch.Tensor)] or [torch.float32]
    dtypes += [torch.complex64] * isinstance(mean, complex)
    return reduce(torch.promote_types, dtypes)


def _normal_shape(mean, std, shape):
    for value in (mean, std):
        if isinstance(value, torch.Tensor):
            return value.shape
    return as_ints(shape)


def _normal(mean, std, shape, dtype):
    """A complex draw has two parts, each with half of the variance."""
    if dtype.is_complex:
        mean, std = torch.as_tensor(mean, dtype=dtype).expand(shape), std * sqrt(0.5)
    return draw_distribution.normal_draw(mean, std, shape, dtype)


@api("paddle.normal", std=positive(), shape=EXTENT, grad=RANDOM)
def normal(mean=0.0, std=1.0, shape=None, name=None, *, out=None):
    return _normal(mean, std, _normal_shape(mean, std, shape), _normal_dtype(mean, std))


@api("paddle.log_normal", std=positive(), shape=EXTENT, grad=RANDOM)
def log_normal(mean=1.0, std=2.0, shape=None, name=None):
    """`mean` and `std` are those of the logarithm."""
    return draw_distribution.log_normal_draw(
        mean, std, _normal_shape(mean, std, shape), _normal_dtype(mean, std)
    )


@api("paddle.randn", "paddle.standard_normal", shape=EXTENT, grad=RANDOM)
def standard_normal(
    shape, dtype=None, name=None, *, out=None, device=None, requires_grad=False, pin_memory=False
):
    return _normal(0.0, 1.0, as_ints(shape), as_dtype(dtype) or torch.float32)


@api("paddle.randn_like", grad=RANDOM)
def randn_like(x, dtype=None, name=None, *, device=None, requires_grad=False):
    return _normal(0.0, 1.0, x.shape, as_dtype(dtype) or x.dtype)


@api("paddle.rand", shape=EXTENT, grad=RANDOM)
def rand(shape, dtype=None, name=None, *, out=None, device=None, requires_grad=False, pin_memory=False):
    return draw_distribution.uniform_draw(0.0, 1.0, as_ints(shape), as_dtype(dtype) or torch.float32)


@api("paddle.rand_like", grad=RANDOM)
def rand_like(input, name=None, *, dtype=None, device=None, requires_grad=False):
    return draw_distribution.uniform_draw(0.0, 1.0, input.shape, as_dtype(dtype) or input.dtype)


@api("paddle.uniform", shape=EXTENT, grad=RANDOM)
def uniform_draw(
    shape, dtype=None, min=0, max=1.0, seed=0, name=None, *, out=None, device=None, requires_grad=False
):
    return draw_distribution.uniform_draw(min, max, as_ints(shape), as_dtype(dtype) or torch.float32)


@api("paddle.randint", shape=EXTENT, grad=RANDOM)
def randint(low=0, high=None, shape=(1,), dtype=None, name=None):
    low, high = (0, low) if high is None else (low, high)
    return draw_distribution.integer_draw(low, high, as_ints(shape), as_dtype(dtype) or torch.int64)


@api("paddle.randint_like", grad=RANDOM)
def randint_like(x, low=0, high=None, dtype=None, name=None):
    low, high = (0, low) if high is None else (low, high)
    return draw_distribution.integer_draw(low, high, x.shape, as_dtype(dtype) or x.dtype)


@api("paddle.randperm", grad=RANDOM)
def randperm(n, dtype="int64", name=None, *, out=None, device=None, requires_grad=False, pin_memory=False):
    return draw_distribution.permutation(n, as_dtype(dtype))


@api("paddle.bernoulli", x=SHARE, grad=RANDOM)
def bernoulli(x, p=None, name=None):
    return draw_distribution.bernoulli_draw(x if p is None else p, x.shape, x.dtype)


@api("paddle.poisson", x=positive(0.5, 5.0), grad=RANDOM)
def poisson(x, name=None):
    return draw_distribution.poisson_draw(x, x.shape, x.dtype)


@api("paddle.binomial", count=integers(1, 20), prob=SHARE, grad=RANDOM)
def binomial(count, prob, name=None):
    shape = common_shape(count.shape, prob.shape)
    return draw_distribution.binomial_draw(count.expand(shape), prob.expand(shape), shape, torch.int64)


@api("paddle.standard_gamma", x=positive(0.5, 5.0), grad=RANDOM)
def standard_gamma(x, name=None):
    return draw_distribution.gamma_draw(x, 1.0, x.shape, x.dtype)


def _weights(this, num_samples=1, replacement=False):
    """Increasing weights, so that ignoring them shows. Small rows have zero weights if enough categories
    remain."""
    categories = this.shape[-1] if this.shape else 1
    if this.size > LITERAL_LIMIT or categories == 1 or not (replacement or num_samples <= categories // 2):
        return increasing(0.05, 1.05)
    row = [place + 1 if place % 4 != 2 else 0 for place in range(categories)]
    return Literal(row * (this.size // categories))


@api(*spread("multinomial", *PUBLIC), x=_weights, grad=RANDOM)
def multinomial(x, num_samples=1, replacement=False, name=None, *, out=None):
    return draw_distribution.categorical_draw(x, (*x.shape[:-1], num_samples), torch.int64, replacement)


@api("paddle.Tensor.uniform_", grad=RANDOM)
def uniform_(x, min=0, max=1.0, seed=0, name=None):
    return draw_distribution.uniform_draw(min, max, x.shape, x.dtype)


@api("paddle.Tensor.normal_", grad=RANDOM)
def normal_(x, mean=0.0, std=1.0, name=None):
    return _normal(mean, std, x.shape, x.dtype)


@api("paddle.Tensor.log_normal_", grad=RANDOM)
def log_normal_(x, mean=1.0, std=2.0, name=None):
    return draw_distribution.log_normal_draw(mean, std, x.shape, x.dtype)


@api("paddle.Tensor.bernoulli_", p=SHARE, grad=RANDOM)
def bernoulli_(x, p=0.5, name=None):
    return draw_distribution.bernoulli_draw(p, x.shape, x.dtype)


@api("paddle.Tensor.exponential_", grad=RANDOM)
def exponential_(x, lam=1.0, name=None):
    return draw_distribution.exponential_draw(lam, x.shape, x.dtype)


@api("paddle.Tensor.cauchy_", grad=RANDOM)
def cauchy_(x, loc=0, scale=1, name=None):
    return draw_distribution.cauchy_draw(loc, scale, x.shape, x.dtype)


@api("paddle.Tensor.geometric_", probs=SHARE, grad=RANDOM)
def geometric_(x, probs, name=None):
    return draw_distribution.geometric_draw(probs, x.shape, x.dtype)
