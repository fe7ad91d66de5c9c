"""Elementwise functions with more digits and range than float64, by mpmath, which PyTorch depends on.

The truth of a float64 result has no more digits than the result, and overflows where the result does: the
square in the gradient of asin(1e200). So for these functions mpmath computes it, element by element.
"""

from collections.abc import Callable
from typing import Any

from assay.registry import plain_stem

MOST_ELEMENTS = 1 << 14  # an element takes some 100 µs, …
COSTS = {"digamma": 8}  # … or this many times as long
DIGITS = 40
VALUES = frozenset({"usual", "wide", "layout"})  # other regimes have branch cuts and signed zeros
FINEST = frozenset({"float64", "complex128"})

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def table(mp: Any) -> dict[str, Pair]:
    """Each function and its derivative, by the API's name."""
    one = mp.mpf(1)
    sigmoid = lambda z: 1 / (1 + mp.exp(-z))  # noqa: E731
    lgamma = (lambda z: mp.re(mp.loggamma(z)), mp.digamma)
    return {
        "sin": (mp.sin, mp.cos),
        "cos": (mp.cos, lambda z: -mp.sin(z)),
        "tan": (mp.tan, lambda z: 1 / mp.cos(z) ** 2),
        "asin": (mp.asin, lambda z: 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z))),
        "acos": (mp.acos, lambda z: -1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z))),
        "atan": (mp.atan, lambda z: 1 / (1 + z * z)),
        "sinh": (mp.sinh, mp.cosh),
        "cosh": (mp.cosh, mp.sinh),
        "tanh": (mp.tanh, lambda z: mp.sech(z) ** 2),
        "asinh": (mp.asinh, lambda z: 1 / mp.sqrt(1 + z * z)),
        "acosh": (mp.acosh, lambda z: 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1))),
        "atanh": (mp.atanh, lambda z: 1 / (1 - z * z)),
        "exp": (mp.exp, mp.exp),
        "expm1": (mp.expm1, mp.exp),
        "log": (mp.log, lambda z: 1 / z),
        "log2": (lambda z: mp.log(z) / mp.log(2), lambda z: 1 / (z * mp.log(2))),
        "log10": (lambda z: mp.log(z) / mp.log(10), lambda z: 1 / (z * mp.log(10))),
        "log1p": (mp.log1p, lambda z: 1 / (1 + z)),
        "sqrt": (mp.sqrt, lambda z: one / (2 * mp.sqrt(z))),
        "rsqrt": (lambda z: 1 / mp.sqrt(z), lambda z: -one / (2 * z * mp.sqrt(z))),
        "reciprocal": (lambda z: 1 / z, lambda z: -1 / (z * z)),
        "sigmoid": (sigmoid, lambda z: sigmoid(z) * sigmoid(-z)),
        "erf": (mp.erf, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)),
        "digamma": (mp.digamma, lambda z: mp.psi(1, z) if z > 0 else mp.nan),
        "lgamma": lgamma,
        "gammaln": lgamma,
    }


def precise(torch: Any, entry: Any, job: Any, named: dict[str, Any], function: Any) -> Any:
    """The function that computes the truth of a case: `function`, or one that asks mpmath."""
    x = next(iter(named.values()), None)
    known = torch is not None and entry is not None and job.values in VALUES
    if not known or getattr(x, "dtype", "") not in FINEST:
        return function
    stem = plain_stem(entry.name)
    if x.size * COSTS.get(stem, 1) > MOST_ELEMENTS:
        return function
    try:
        import mpmath
    except ModuleNotFoundError:
        return function
    context = mpmath.mp.clone()
    context.dps = DIGITS
    pair = table(context).get(stem)
    return function if pair is None else by_elements(torch, context, pair, function)


def by_elements(torch: Any, mp: Any, pair: Pair, function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function of a tensor that computes with mpmath. Elements for which mpmath has no number are those
    of `function`: outside of the domain, at poles, NaN and infinity."""
    value, slope = pair

    def one(make: Callable[..., Any], otherwise: Any, *arguments: Any) -> Any:
        try:
            found = make(*map(mp.convert, arguments))
            kind = type(otherwise)
            found = kind(found) if kind is complex or not mp.im(found) else otherwise
        except (ArithmeticError, ValueError, TypeError, mp.NoConvergence):
            return otherwise
        return otherwise if found != found else found

    def mapped(make: Callable[..., Any], otherwise: Any, *tensors: Any) -> Any:
        columns = [tensor.resolve_conj().flatten().tolist() for tensor in (otherwise, *tensors)]
        found = [one(make, *row) for row in zip(*columns, strict=True)]
        return torch.tensor(found, dtype=otherwise.dtype, device=otherwise.device).reshape(otherwise.shape)

    class Precise(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return mapped(value, function(x), x)

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                again = x.detach().requires_grad_()
                (otherwise,) = torch.autograd.grad(function(again), again, upstream)
            return mapped(lambda z, g: g * mp.conj(slope(z)), otherwise, x, upstream)

    return lambda x, *others, **more: Precise.apply(x)
