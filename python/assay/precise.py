"""Elementwise functions with more digits and range than float64.

The truth of a float64 result has no more digits than the result, and overflows where the result does: the
square in the gradient of asin(1e200). NumPy's long double has 64 bits of mantissa and 15 of exponent on
x86-64 (more on other CPUs), and takes 0.1 to 0.7 µs an element. What NumPy lacks, mpmath computes, which
PyTorch depends on: some 100 µs an element.
"""

from collections.abc import Callable
from typing import Any

from assay.registry import plain_stem

MOST_ELEMENTS = 1 << 20
MOST_SLOW = {"digamma": 1 << 9}  # by mpmath
MOST_OF_OTHERS = 1 << 11
DIGITS = 40
VALUES = frozenset({"usual", "wide", "layout"})  # other regimes have branch cuts and signed zeros
FINEST = frozenset({"float64", "complex128"})

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
Mapped = Callable[..., Any]


def fast_table(np: Any) -> dict[str, Pair]:
    """Each function of an array and its derivative, by the API's name. Sums that cancel near a singularity
    are products of exact differences."""

    def one_and_square(z: Any) -> Any:
        return (1 + 1j * z) * (1 - 1j * z) if np.iscomplexobj(z) else 1 + z * z

    def root_of_one_and_square(z: Any) -> Any:
        return np.sqrt(1 + 1j * z) * np.sqrt(1 - 1j * z) if np.iscomplexobj(z) else np.hypot(1, z)

    log_2, log_10 = np.log(np.longdouble(2)), np.log(np.longdouble(10))
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    return {
        "sin": (np.sin, np.cos),
        "cos": (np.cos, lambda z: -np.sin(z)),
        "tan": (np.tan, lambda z: 1 / np.cos(z) ** 2),
        "asin": (np.arcsin, lambda z: 1 / (np.sqrt(1 - z) * np.sqrt(1 + z))),
        "acos": (np.arccos, lambda z: -1 / (np.sqrt(1 - z) * np.sqrt(1 + z))),
        "atan": (np.arctan, lambda z: 1 / one_and_square(z)),
        "sinh": (np.sinh, np.cosh),
        "cosh": (np.cosh, np.sinh),
        "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
        "asinh": (np.arcsinh, lambda z: 1 / root_of_one_and_square(z)),
        "acosh": (np.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
        "atanh": (np.arctanh, lambda z: 1 / ((1 - z) * (1 + z))),
        "exp": (np.exp, np.exp),
        "expm1": (np.expm1, np.exp),
        "log": (np.log, lambda z: 1 / z),
        "log2": (lambda z: np.log(z) / log_2, lambda z: 1 / (z * log_2)),
        "log10": (lambda z: np.log(z) / log_10, lambda z: 1 / (z * log_10)),
        "log1p": (np.log1p, lambda z: 1 / (1 + z)),
        "sqrt": (np.sqrt, lambda z: 1 / (2 * np.sqrt(z))),
        "rsqrt": (lambda z: 1 / np.sqrt(z), lambda z: -1 / (2 * z * np.sqrt(z))),
        "reciprocal": (lambda z: 1 / z, lambda z: -1 / (z * z)),
        "sigmoid": (sigmoid, lambda z: sigmoid(z) * sigmoid(-z)),
    }


# NumPy adds one before it takes the logarithm of a complex number.
INEXACT = frozenset({("log1p", "complex128"), ("expm1", "complex128")})


def slow_table(mp: Any) -> dict[str, Pair]:
    """Each function of a number and its derivative, by the API's name."""
    lgamma = (lambda z: mp.re(mp.loggamma(z)), mp.digamma)
    return {
        "expm1": (mp.expm1, mp.exp),
        "log1p": (mp.log1p, lambda z: 1 / (1 + z)),
        "erf": (mp.erf, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)),
        "digamma": (mp.digamma, lambda z: mp.psi(1, z) if z > 0 else mp.nan),
        "lgamma": lgamma,
        "gammaln": lgamma,
    }


def precise(torch: Any, entry: Any, job: Any, named: dict[str, Any], function: Any) -> Any:
    """The function that computes the truth of a case: `function`, or one with more digits."""
    x = next(iter(named.values()), None)
    known = torch is not None and entry is not None and job.values in VALUES
    if not known or getattr(x, "dtype", "") not in FINEST:
        return function
    stem = plain_stem(entry.name)
    try:
        import numpy as np

        fast = fast_table(np).get(stem) if (stem, x.dtype) not in INEXACT else None
        if fast is not None:
            mapped = by_arrays(torch, np)
            return with_slope(torch, mapped, fast, np.conj, function) if x.size <= MOST_ELEMENTS else function
        import mpmath
    except ModuleNotFoundError:
        return function
    context = mpmath.mp.clone()
    context.dps = DIGITS
    slow = slow_table(context).get(stem)
    if slow is None or x.size > MOST_SLOW.get(stem, MOST_OF_OTHERS):
        return function
    return with_slope(torch, by_elements(torch, context), slow, context.conj, function)


def by_arrays(torch: Any, np: Any) -> Mapped:
    """Maps a function of arrays over tensors. Where it has no number, `otherwise` stays: outside of the
    domain, and for NaN."""

    def mapped(make: Callable[..., Any], otherwise: Any, *tensors: Any) -> Any:
        wide = np.clongdouble if otherwise.is_complex() else np.longdouble
        arrays = [tensor.detach().resolve_conj().cpu().numpy() for tensor in (otherwise, *tensors)]
        with np.errstate(all="ignore"):
            found = make(*[array.astype(wide) for array in arrays[1:]]).astype(arrays[0].dtype)
        found = np.where(np.isnan(found), arrays[0], found)
        return torch.from_numpy(found).to(otherwise.device)

    return mapped


def by_elements(torch: Any, mp: Any) -> Mapped:
    """Maps a function of numbers over tensors. Elements for which mpmath has no number stay `otherwise`."""

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

    return mapped


def with_slope(torch: Any, mapped: Mapped, pair: Pair, conj: Any, function: Any) -> Callable[..., Any]:
    """The function of a tensor, with its gradient."""
    value, slope = pair

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
            return mapped(lambda z, g: g * conj(slope(z)), otherwise, x, upstream)

    return lambda x, *others, **more: Precise.apply(x)
