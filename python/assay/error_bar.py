"""What the error bar of a result depends on: the terms of its sums, and its floors."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.regimes import FEWEST_OF_A_LONG_SUM, HALF, OTHERS, SAME, of_integers, specs_in, traits_of
from assay.rules import ask
from assay.shared import FEW_TERMS
from assay.spec import COMPLEX

# Blocks of this many terms are added one after the other. With one value everywhere the roundings of a
# block have one direction, so its error grows with the length of the block instead of its root.
BLOCK = FEWEST_OF_A_LONG_SUM
# Errors of singular values, in ulps of the largest one: cuSOLVER's Jacobi method stops that early for large
# matrices, and at this many for small ones. LAPACK's tests accept 30 times the extent.
SPECTRAL = 4.0
# The floor of floating-point results of integers, in ulps of the largest element and of 1.
WHOLE = 64.0
# The least floor in ulps of 1 where the reference is computed in float64 and then rounded. Without a floor,
# that would show that a result is rounded once (rounds_once in measure/bar.cc).
ROUNDED = 2.0**-20
# Numbers of terms below one (measure/bar.h): conditioning does not widen the bar; a function of one number,
# which does not overflow before its result does.
DIRECT, ALONE = 0.0, 0.5


class Inputs(NamedTuple):
    """What the error bars of a call depend on."""

    sizes: list[int]  # elements of its tensors; for gradients also of its results
    longest: int = 1  # the longest axis
    named: Mapping[str, Any] = {}  # its arguments
    half: bool = False  # whether a tensor has half precision
    complex: bool = False  # whether a tensor is complex
    whole: bool = False  # whether all tensors are integers, which cannot be perturbed

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> "Inputs":
        """The inputs of a call with these named arguments."""
        specs = specs_in(named.values())
        longest = max([extent for spec in specs for extent in spec.shape], default=1)
        dtypes = {spec.dtype for spec in specs}
        sizes = [spec.size for spec in specs]
        half, complex_ = not HALF.isdisjoint(dtypes), not COMPLEX.isdisjoint(dtypes)
        return cls(sizes, longest, named, half, complex_, of_integers(named))


def bar_of(
    entry: Any, regime: str, inputs: Inputs, count: int, upstream: float = 0.0
) -> tuple[float, float, float]:
    """The parts of the error bar of a result of `count` elements, or of a gradient under an upstream gradient
    of this magnitude: the number of terms in a sum, and the floors in ulps of the largest element and of
    1."""
    terms = terms_of(entry, inputs, count)
    if entry is None:
        return terms, 1.0, 0.0
    traits = traits_of(entry)
    if entry.own and inputs.whole:  # two devices compute in float32
        scale = said_of(traits.coordinates, inputs, 0.0) if callable(traits.coordinates) else 0.0
        return float(BLOCK), max(WHOLE, scale), WHOLE
    terms = said_of(traits.terms_back if upstream else traits.terms, inputs, terms)
    if traits.direct and not upstream and not inputs.complex and terms <= 1:
        return DIRECT, 0.0, 0.0
    scale = 0.0
    if entry.family == "unary" and terms <= 1 and not upstream and not inputs.complex:
        terms = ALONE
    alone = terms <= 1 and not traits.sums and bool(inputs.sizes)  # elementwise
    if traits.exact_sums and regime == "exact" and not inputs.half and not upstream:
        terms = DIRECT
    if regime == SAME:
        terms = min(max(terms, FEW_TERMS + 1.0), float(BLOCK))
    if traits.coordinates:
        scale = said_of(
            None if traits.coordinates is True else traits.coordinates, inputs, float(inputs.longest)
        )
    elif regime != "wide" and not alone:
        spectral = traits.spectral
        spectral = ask(spectral, inputs.named, None) if callable(spectral) else spectral
        scale = max(SPECTRAL, math.sqrt(inputs.longest) / 2) if spectral else 1.0
        scale = max(scale, said_of(traits.scale_back if upstream else traits.scale, inputs, 1.0))
    near_one = traits.near_one
    if (upstream or inputs.complex) and traits.near_one_back is not None:
        near_one = traits.near_one_back
    if entry.own and regime == "exact":
        near_one = max(near_one, ROUNDED)
    return terms, scale, (upstream or 1.0) * near_one


def said_of(said: float | Callable[..., float | None] | None, inputs: Inputs, otherwise: float) -> float:
    """The table's value for a call: a number, or a function of the call's arguments."""
    said = ask(said, inputs.named, None) if callable(said) else said
    return otherwise if said is None else float(said)


def terms_of(entry: Any, inputs: Inputs, count: int) -> float:
    """The number of terms in the sum of one of `count` result elements, from the shapes. The error bar grows
    with its square root."""
    if not count or not inputs.sizes:
        return 1.0
    sizes = sorted(inputs.sizes)
    ratio = sizes[-1] / count
    traits = OTHERS if entry is None else traits_of(entry)
    if entry is None or not traits.sums:
        return max(1.0, ratio)
    if traits.rows:
        return max(1.0, sizes[-1] / min([count, *(size for size in sizes if size)]))
    # For a product [m, k] x [k, n] the root is k, for its gradients m and n.
    product = math.sqrt(sizes[-1] * sizes[-2] / count) if len(sizes) > 1 else 1.0
    fewest = FEW_TERMS + 1.0 if traits.chained else 1.0
    return max(fewest, ratio, product, float(inputs.longest))
