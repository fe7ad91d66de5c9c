"""Second opinions on special functions, polynomials, windows and losses (see independent_formulas)."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import starmap
from typing import Any

from assay.apis.audio import COSINES
from assay.apis.loss import reduced
from assay.precise import by_elements
from assay.reference import torch
from assay.torch_cases.independent_formulas import formula_of, names, own

__all__ = ["formula_of", "names"]

# Elements of a tensor that mpmath computes, in 0.01 to 0.5 ms each; the others are PyTorch's float64. MOST_OF
# has the functions that take up to 1.7 ms.
MOST = 16
MOST_OF = {f"{kind}modified_bessel_k{n}": 4 for kind in ("", "scaled_") for n in (0, 1)}
DIGITS = 22
LARGEST = 800.0  # arguments beyond it take mpmath too long
try:
    import mpmath

    mp = mpmath.mp.clone()
    mp.dps = DIGITS
except ModuleNotFoundError:  # the tables load without frameworks
    mp = None


OF_INFINITY = frozenset(
    {"zeta", "entr", "i0", "i1", "i0e", "i1e", "modified_bessel_i0", "modified_bessel_i1"}
)  # mpmath's other functions may not return


def _bessel_i(n: int, x: Any, scaled: bool = False) -> Any:
    if mp.isinf(x):
        return mp.mpf(0) if scaled else x**n * mp.inf
    return mp.besseli(n, x) * mp.exp(-abs(x) * scaled)


def _polygamma(n: Any, x: Any) -> Any:
    """Orders are whole. At its poles only an odd order has a limit."""
    if mp.isinf(x) or x <= 0 and x == mp.floor(x):
        return mp.inf if n % 2 and x <= 0 else mp.nan
    return mp.psi(int(n), x)


def _of_degree(polynomial: Callable[[Any, int], Any]) -> Callable[[Any, Any], Any]:
    """Degrees are cut to whole numbers, and below 0 the polynomial is 0."""
    return lambda x, n: polynomial(x, int(n)) if n > -1 else mp.mpf(0)


def _of_one() -> dict[str, Callable[[Any], Any]]:
    """Functions of a number, by the name of PyTorch's function."""
    of = {name: name for name in "cosh sinh erf erfc erfinv digamma expm1 log1p".split()}
    of |= {"psi": "digamma", "airy_ai": "airyai", "spherical_bessel_j0": "sinc", "ndtr": "ncdf"}
    found = {name: lambda x, of=theirs: getattr(mp, of)(x) for name, theirs in of.items()}
    for n in (0, 1):
        found |= {
            f"bessel_j{n}": lambda x, n=n: mp.besselj(n, x),
            f"bessel_y{n}": lambda x, n=n: mp.bessely(n, x),
            f"modified_bessel_i{n}": lambda x, n=n: _bessel_i(n, x),
            f"i{n}": lambda x, n=n: _bessel_i(n, x),
            f"i{n}e": lambda x, n=n: _bessel_i(n, x, scaled=True),
            f"modified_bessel_k{n}": lambda x, n=n: mp.besselk(n, x),
            f"scaled_modified_bessel_k{n}": lambda x, n=n: mp.exp(x) * mp.besselk(n, x),
        }
    return found | {
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "log_ndtr": lambda x: mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.ncdf(x)),
        "exp2": lambda x: mp.mpf(2) ** x,
        "entr": lambda x: -x * mp.log(x) if x > 0 else -mp.inf if x else mp.mpf(0),
        "logit": lambda x: mp.log(x) - mp.log1p(-x),
    }


def _of_two() -> dict[str, Callable[[Any, Any], Any]]:
    """Functions of two numbers, by the name of PyTorch's function."""
    degrees: dict[str, Callable[[Any, int], Any]] = {
        "hermite_polynomial_h": lambda x, n: mp.hermite(n, x),
        "hermite_polynomial_he": lambda x, n: mp.sqrt(2) ** -n * mp.hermite(n, x / mp.sqrt(2)),
        "laguerre_polynomial_l": lambda x, n: mp.laguerre(n, 0, x),
        "legendre_polynomial_p": lambda x, n: mp.legendre(n, x),
        "chebyshev_polynomial_t": lambda x, n: mp.chebyt(n, x),
        "chebyshev_polynomial_u": lambda x, n: mp.chebyu(n, x),
        "shifted_chebyshev_polynomial_t": lambda x, n: mp.chebyt(n, 2 * x - 1),
        "shifted_chebyshev_polynomial_u": lambda x, n: mp.chebyu(n, 2 * x - 1),
    }
    of: dict[str, Callable[[Any, Any], Any]] = {
        "xlogy": lambda x, y: x * mp.log(y) if x else x,
        "xlog1py": lambda x, y: x * mp.log1p(y) if x else x,
        "zeta": lambda x, y: mp.nan if x <= 1 or y <= 0 else mp.mpf(0) if mp.isinf(y) else mp.zeta(x, y),
        "gammainc": lambda x, y: mp.nan if min(x, y) < 0 else mp.gammainc(x, 0, y, regularized=True),
        "gammaincc": lambda x, y: mp.nan if min(x, y) < 0 else mp.gammainc(x, y, regularized=True),
    }
    of |= {"igamma": of["gammainc"], "igammac": of["gammaincc"]}
    return of | {name: _of_degree(polynomial) for name, polynomial in degrees.items()}


def _limited(name: str, function: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    """The name, and the function, which raises ValueError where mpmath has no number, or needs too long for
    it. The truth asks for the numbers of the reference again."""
    function = lru_cache(1 << 12)(function)

    def one(*arguments: Any) -> Any:
        for size in map(abs, arguments):
            if not (size == 0 or 1e-30 < size <= LARGEST or mp.isinf(size) and name in OF_INFINITY):
                raise ValueError(name)
        return function(*arguments)

    return name, one


def _by_numbers(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """The function of the first elements by mpmath: NaN for NaN, but for polynomials, which may be 1. The
    others, and gradients, are PyTorch's own."""
    if mp is None:
        return None
    known = (getattr(torch.special, name, None) or getattr(torch, name))(*given)
    most = MOST_OF.get(name, MOST)
    parts = [torch.as_tensor(each, dtype=known.dtype).expand(known.shape).flatten()[:most] for each in given]
    kept = known.detach()
    head = by_elements(torch, mp)(function, kept.flatten()[:most], *(p.detach() for p in parts))
    right = torch.cat([head, kept.flatten()[most:]]).reshape(known.shape)
    change = torch.where((right == kept) | right.isnan(), 0, right - kept)
    right = torch.where(kept.isfinite() | (change == 0), known + change, right)
    if "polynomial" not in name:
        for each in given:
            right = torch.where(torch.as_tensor(each).isnan(), math.nan, right)
    return right


for _name, _one in starmap(_limited, _of_one().items()):
    own(_name)(lambda x, name=_name, one=_one: _by_numbers(name, one, x))
for _name, _two in starmap(_limited, _of_two().items()):
    own(_name)(lambda x, y, name=_name, two=_two: _by_numbers(name, two, x, y))
for _name, _two in starmap(_limited, [("polygamma", _polygamma)]):
    own(_name)(lambda n, x, name=_name, two=_two: _by_numbers(name, two, n, x))


@own("kl_div")
def _kl_div(x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    entropy = torch.exp(target) * target if log_target else torch.special.xlogy(target, target)
    loss = entropy - (torch.exp(target) if log_target else target) * x
    return loss.sum() / len(x) if reduction == "batchmean" else reduced(loss, reduction)


def _binary(x: Any, target: Any) -> Any:
    """The loss of a logit."""
    return (1 - target) * x + torch.logaddexp(-x, torch.zeros_like(x))


@own("binary_cross_entropy_with_logits")
def _with_logits(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    loss = _binary(x, target)
    return reduced(loss if weight is None else loss * weight.detach(), reduction)


@own("binary_cross_entropy")
def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    yes, no = (torch.where(each == 0, -100.0, torch.log(each).clamp(min=-100)) for each in (x, 1 - x))
    loss = -target * yes - (1 - target) * no
    return reduced(loss if weight is None else loss * weight.detach(), reduction)


@own("margin_ranking_loss")
def _margin_ranking(x: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    return reduced((target * (input2 - x) + margin).clamp(min=0), reduction)


@own("soft_margin_loss")
def _soft_margin(x: Any, target: Any, reduction: str = "mean") -> Any:
    return reduced(_binary(-target.detach() * x, torch.zeros_like(x)), reduction)


@own("multilabel_soft_margin_loss")
def _multilabel(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    loss = _binary(x, target)
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


def _of_cosines(parts: tuple[float, ...], points: int, periodic: bool) -> Any:
    """A window: a sum of cosines with alternating signs."""
    angle = torch.arange(points, dtype=torch.float64) * (2 * math.pi / max(1, points - 1 + periodic))
    window = sum((-1) ** k * part * torch.cos(k * angle) for k, part in enumerate(parts))
    return window if points > 1 else torch.ones(points, dtype=torch.float64)


for _name, _parts in COSINES.items():
    own(_name)(lambda M, sym=True, parts=_parts: _of_cosines(parts, M, not sym))
    own(f"{_name}_window")(
        lambda window_length, periodic=True, parts=_parts: _of_cosines(parts, window_length, periodic)
    )
