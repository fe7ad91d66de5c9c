"""Value regimes: the sets of values under which every case runs, beside those of its rules.

    usual     the value rules of the API
    wide      large and tiny magnitudes of both signs, from subnormal to almost infinite
    nan       NaN in some rows
    infinity  infinities of one or both signs in some rows
    bulk      only -inf: the result of a reduction over it
    exact     halves and small integers, with zeros and ties; for integer dtypes few numbers, or negative
              ones if they must be distinct; masks have full and empty rows
    layout    the usual values in non-contiguous tensors
    constant  one number that no dtype holds exactly, everywhere, for long sums

An argument follows a regime only as far as its rule leaves it free. Indices, shapes, labels, boxes,
structured matrices and listed values keep their rule; positive values stay positive, and shares stay within
[0, 1]. A regime that changes no argument of a case is left out. Like rules, regimes see specifications only.

TRAITS has the regimes of each family of APIs. A single API has `undefined={regime: reason}` and
`regimes={regime: {parameter: rule}}`.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

from assay import shared
from assay.results import SEQUENCE
from assay.rules import Fill, Literal, ask, resolve
from assay.shared import BOTH, POSITIVE, REGIMES, SHARE
from assay.spec import COMPLEX, FLOATING, INTEGER, TensorSpec

USUAL = "usual"
# Regimes that compare results only: derivatives are undefined at NaN and infinity.
FORWARD_ONLY = frozenset({"nan", "infinity", "bulk", "constant"})
SAME = "constant"
OBSERVED = "observed"  # as a capture has seen them (assay.observed); only on demand

HUGE = 1.7e308
NORMAL = 0.0  # the smallest normal number of the dtype
SMALLEST_NORMAL = {"float16": 2.0**-14, "float64": 2.0**-1022, "complex128": 2.0**-1022}
LARGEST = {"float16": 2.0**15, "float64": 2.0**1023, "complex128": 2.0**1023}  # powers of two


class Traits(NamedTuple):
    """What the APIs of one family have in common: their regimes, and what their error bars consist of."""

    wide: tuple[float, float] = (2.0**-20, 2.0**10)  # magnitudes under `wide`
    sums: bool = True  # results are sums; otherwise only gradients of broadcast inputs are
    products: bool = False  # … of products
    moves: bool = False  # data only moves, so results have the same bits
    # Coordinates are computed. Their rounding costs one ulp times the extent: the longest of all, or the
    # result of a function of the call's arguments.
    coordinates: bool | Callable[..., float] = False
    # The floor in ulps of 1, for functions made of exponentials: 1 - tanh(x)^2, erf(x) + 1.
    near_one: float = 0.0
    near_one_back: float | None = None  # … of gradients and complex numbers, if it differs
    # Sums over windows, or nested sums: the shapes do not show the number of terms, which is large.
    chained: bool = False
    # The number of terms of a result element, or a function of the call's arguments, if shapes do not show
    # it.
    terms: float | Callable[..., float | None] | None = None
    terms_back: float | Callable[..., float | None] | None = None  # … of a gradient element
    # A result element sums a row of one input that no other element uses.
    rows: bool = False
    # A result sums the inputs themselves. For exact values that is exact, and one rounding follows.
    exact_sums: bool = False
    # A function of one real number that is accurate to a few ulps everywhere. Neither conditioning nor the
    # floor widens the bar of a result.
    direct: bool = False
    # Results are long sums that blocks add up, so their error does not grow with the terms.
    blocked: bool = False
    # Singular values or eigenvalues (a function of the call's arguments may say): the algorithm is backward
    # stable, so each value has the error of the largest one, which grows with the extent.
    spectral: bool | Callable[..., bool] = False
    # The floor in ulps of the largest element, or a function of the call's arguments: a power of a rounded
    # intermediate result multiplies its error.
    scale: float | Callable[..., float | None] = 1.0
    scale_back: float | Callable[..., float | None] = 1.0  # … of gradients
    # Half precision is computed in float32 from the inputs to the result.
    in_float32: bool = False
    # Results are whole numbers that no kernel rounds, so they have the same bits: always, or under the regime
    # of this name. A function of the call's arguments may say.
    whole: bool | str | Callable[..., bool | str] = False
    without: Mapping[str, str] = {}  # by regime: the reason why nothing is judged


HALF = frozenset({"float16", "bfloat16"})
# From the smallest normal number: frameworks may flush subnormal numbers to zero.
EVERYTHING = (NORMAL, HUGE)

_ORDER = "the position of NaN in a sorted order is not specified"
_CHAOS = "one NaN or infinity spreads to every element through undefined differences and products"
_INDEX = "positions, boxes and regions must be finite"
_RANDOM = "random draws are compared with their distribution, under usual values only"

_SPREADS = dict.fromkeys(("infinity", "bulk"), "the difference of infinities depends on the formula")
_MAXIMA = {"nan": "the documentation does not say whether a maximum over NaN is NaN"}
_FINITE = {"nan": _CHAOS, "infinity": _CHAOS, "bulk": _CHAOS}
_DRAWS = dict.fromkeys(("wide", "nan", "infinity", "bulk", "exact"), _RANDOM)
_COORDINATES = dict.fromkeys(("wide", "nan", "infinity", "bulk", "exact"), _INDEX)
_ROUNDED_COORDINATES = {
    "wide": "rounding a coordinate selects a neighbour, whose value may be arbitrarily different"
}
_TIES = "which of several equal elements is selected, and gets the gradient, is not specified"
_ELEMENTS = {"bulk": "elementwise functions are tested at -inf by the regime `infinity`"}

# For elementwise functions; for functions that only move data.
_EACH = Traits(EVERYTHING, False, without=_ELEMENTS)
_MOVED = _EACH._replace(moves=True)
_POOLED = Traits(exact_sums=True, blocked=True, in_float32=True, without=_MAXIMA)
TRAITS: dict[str, Traits] = {
    **dict.fromkeys("arithmetic comparison bitwise casting gather_scatter padding creation".split(), _EACH),
    **dict.fromkeys("embedding inspection methods".split(), _EACH),
    **dict.fromkeys("shape indexing joining selection diagonals".split(), _MOVED),
    **dict.fromkeys("pooling adaptive_pooling".split(), _POOLED),
    **dict.fromkeys("detection regions anchors".split(), Traits(coordinates=True, without=_COORDINATES)),
    "unary": _EACH._replace(near_one_back=0.5),
    "activation": Traits(EVERYTHING, False, near_one=2.0),
    "reduction": Traits(rows=True, blocked=True, in_float32=True),
    "statistics": Traits(without={"exact": _TIES}),
    "cumulative": Traits(),
    "norms": Traits(blocked=True, in_float32=True),
    "sorting": _MOVED._replace(
        without={
            "nan": _ORDER,
            "infinity": _TIES,
            "exact": _TIES,
            "bulk": "all elements are equal, so their order is not specified",
        },
    ),
    "loss": Traits(near_one=1.0, blocked=True, without=_SPREADS),
    "classification": Traits(near_one=1.0, in_float32=True, without=_SPREADS),
    "normalization": Traits(near_one=1.0, in_float32=True, without=_SPREADS),
    "products": Traits(products=True, in_float32=True),
    "convolution": Traits(chained=True, in_float32=True, without=_FINITE),
    "resize": Traits(coordinates=True, without={**_FINITE, **_ROUNDED_COORDINATES}),
    "sparse": Traits(
        without={**_FINITE, "layout": "sparse tensors consist of indices and values, which have no strides"}
    ),
    "random": Traits(without=_DRAWS),
    "dropout": Traits(sums=False, without=_DRAWS),
}
# The traits of an API that belongs to another family by its computation.
MOVES = {"moves": True, "sums": False, "near_one": 0.0, "wide": EVERYTHING, "without": _ELEMENTS}
SORTS = MOVES | {"without": TRAITS["sorting"].without}
DRAWN = _DRAWS
# Families whose behaviour at the edges has not been specified.
_UNSEEN = "this family's behaviour under this regime has not been specified"
OTHERS = Traits(
    near_one=1.0, without={name: _UNSEEN for name in REGIMES if name not in (USUAL, "layout", SAME)}
)
# Families without exponentials.
_BUT_EXACT = {name: reason for name, reason in OTHERS.without.items() if name != "exact"}
TRAITS |= dict.fromkeys(("fourier", "graph", "sparse_images"), Traits(without=_BUT_EXACT))
TRAITS["sequence_loss"] = Traits(near_one=1.0, without=_BUT_EXACT)
# These take more steps than shapes show, and other steps on a GPU.
_STEPS = "attention decomposition fused fused_attention layers_recurrent layers_transformer layers_weighted"
TRAITS |= dict.fromkeys(_STEPS.split(), OTHERS._replace(chained=True))
# Fewer terms than this do not show how a sum is added up.
FEWEST_OF_A_LONG_SUM = 4096


_COMPUTED = ("", "fourier", "unary", "loss")
_COMPOSED = "PyTorch composes functions of operations that overflow in half precision and complex numbers"


class Skip(NamedTuple):
    """Nothing runs under this regime. A reason means that a bug there would not be found."""

    reason: str


class Tensors:
    """The tensors of a case, computed once for all regimes."""

    def __init__(self, entry: Any, named: Mapping[str, Any]) -> None:
        self.entry = entry
        self.named = named

    @cached_property
    def specs(self) -> list[TensorSpec]:
        """The specifications of all tensors."""
        return specs_in(self.named.values())

    @cached_property
    def elements(self) -> int:
        """The number of elements of all tensors."""
        return sum(spec.size for spec in self.specs)

    @cached_property
    def usual(self) -> list[tuple[str, TensorSpec, Fill | Literal | None]]:
        """Each tensor with its parameter's name and its fill under usual values."""
        return [
            (name, spec, fill_of(self.entry, name, self.named, spec, USUAL))
            for name, value in self.named.items()
            for spec in specs_in([value])
        ]


def skip_of(entry: Any, named: Mapping[str, Any], regime: str, tensors: Tensors | None = None) -> Skip | None:
    """Why a case does not run under a regime; None if it runs. `tensors` are those of the same entry and
    arguments."""
    if regime == USUAL:
        return None
    if entry is None:
        return Skip("")
    if entry.kind:
        return Skip(
            "layers and optimizers run under usual values only; their functions run under every regime"
        )
    undefined = entry.undefined.get(regime)
    if not undefined and regime not in entry.regimes:  # an API with its own rules is defined there
        undefined = traits_of(entry).without.get(regime)
    if callable(undefined):
        undefined = ask(undefined, named, None)
    tensors = tensors or Tensors(entry, named)
    if undefined and regime == "exact" and of_integers(named):  # distinct integers have no ties
        undefined = undefined if not any(are_distinct_values(fill) for _, _, fill in tensors.usual) else ""
    if undefined:  # nothing is lost where the regime has no other values
        return Skip(undefined if regime == "layout" or _changes(entry, named, regime, tensors) else "")
    specs = tensors.specs
    if regime == "exact" and entry.own and entry.family in _COMPUTED and of_integers(named):
        return Skip("a floating-point result of integers is compared under usual values")
    narrow = COMPLEX if entry.family == "unary" else COMPLEX | HALF
    if regime == "wide" and entry.own:
        others = [each for each in tensors.usual if each[1].dtype in narrow]
        if any(special_of(entry, name, named, spec, regime) is None for name, spec, _ in others):
            return Skip(_COMPOSED)
    if regime == SAME and (not traits_of(entry).blocked or tensors.elements < FEWEST_OF_A_LONG_SUM):
        return Skip("")
    if not specs or tensors.elements > shared.MOST_ELEMENTS and regime != SAME:
        return Skip("")
    if (
        regime in FORWARD_ONLY
        and not traits_of(entry).moves
        and any(
            each[1].dtype in COMPLEX and special_of(entry, each[0], named, each[1], regime) is None
            for each in tensors.usual
        )
    ):
        return Skip("the result for complex numbers with a NaN or infinite part is not specified")
    if regime == "layout":
        return None if any(spec.size > 1 for spec in specs) else Skip("")
    return None if _changes(entry, named, regime, tensors) else Skip("")


def is_narrow(spec: TensorSpec) -> bool:
    """Whether compositions of operations may overflow in between, though their result does not."""
    return spec.dtype in HALF or spec.dtype in COMPLEX


def of_integers(named: Mapping[str, Any]) -> bool:
    """Whether all tensors that the call reads are integers."""
    read = [spec.dtype for spec in specs_in(value for name, value in named.items() if name != "out")]
    return bool(read) and {*INTEGER, "bool"}.issuperset(read)


def _changes(entry: Any, named: Mapping[str, Any], regime: str, tensors: Tensors) -> bool:
    """Whether some tensor has other values under a regime than the usual ones."""
    return any(
        (special_of(entry, name, named, spec, regime) or changed_by(regime, usual, spec, entry)) != usual
        for name, spec, usual in tensors.usual
    )


def specs_in(values: Any) -> list[TensorSpec]:
    """All tensors in a case's arguments."""
    found: list[TensorSpec] = []
    for value in values:
        if isinstance(value, TensorSpec):  # a tuple too
            found.append(value)
        elif isinstance(value, SEQUENCE):
            found += specs_in(value)
    return found


@cache
def traits_of(entry: Any) -> Traits:
    """The traits of an API: its family's, with its own changes."""
    traits = TRAITS.get(entry.family, OTHERS)
    return traits._replace(**entry.traits) if entry.traits else traits


def fill_of(
    entry: Any,
    parameter: str,
    named: Mapping[str, Any],
    spec: TensorSpec,
    regime: str,
    rules: Mapping[str, Any] | None = None,
) -> Fill | Literal | None:
    """How a tensor is filled under a regime; None is the default of its dtype."""
    if entry is None:
        return None
    rules = entry.rules if rules is None else rules
    if (special := special_of(entry, parameter, named, spec, regime)) is not None:
        return special
    rule = rules.get(parameter)
    usual = resolve(rule, named, spec) if rule is not None else None
    return changed_by(regime, usual, spec, entry)


def special_of(
    entry: Any, parameter: str, named: Mapping[str, Any], spec: TensorSpec, regime: str
) -> Fill | Literal | None:
    """The API's own rule for a regime; None if it has none."""
    rule = entry.regimes[regime].get(parameter) if regime in entry.regimes else None
    return resolve(rule, named, spec) if rule is not None else None


def changed_by(
    regime: str, usual: Fill | Literal | None, spec: TensorSpec, entry: Any
) -> Fill | Literal | None:
    """The fill under a regime, from that under usual values."""
    change = CHANGES.get(regime)
    if change is None or not spec.size:
        return usual
    if spec.dtype in FLOATING or spec.dtype in COMPLEX:
        if not is_free(usual) or spec.dtype.startswith("float8"):
            return usual
        return change(usual or Fill(shared.UNIFORM, -0.5, 0.5, 0), spec, traits_of(entry))
    if usual is None and spec.dtype == "bool" and regime == "exact" and spec.ndim > 1:
        return Fill(shared.ROWS, 0.0, 2.0, row_of(spec))
    if usual is None and spec.dtype in INTEGER:
        return whole_change(spec, regime, traits_of(entry))
    if spec.dtype in INTEGER and are_distinct_values(usual):
        return distinct_change(usual, spec, regime)
    return usual


def are_distinct_values(fill: Fill | Literal | None) -> bool:
    """Whether a fill of integers gives distinct values. Distinct indices are never negative."""
    return isinstance(fill, Fill) and fill.kind == shared.DISTINCT and fill.low < 0


def is_free(fill: Fill | Literal | None) -> bool:
    """Whether an argument may take other real numbers than its rule gives."""
    return fill is None or isinstance(fill, Fill) and fill.kind in (shared.UNIFORM, shared.DISTINCT)


def row_of(spec: TensorSpec) -> int:
    """The extent of the last axis; 1 for a scalar."""
    return spec.shape[-1] if spec.shape else 1


def signs_of(fill: Fill) -> int:
    """The signs (src/fill/rule.h) that a fill may have."""
    if fill.low < 0:
        return BOTH
    return SHARE if fill.high <= 1 else POSITIVE


def wide(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `wide`."""
    low, high = traits.wide
    if fill.kind == shared.DISTINCT:  # scaling by a power of two keeps values distinct
        reach = max(abs(fill.low), abs(fill.high))
        most = min(high, LARGEST.get(spec.dtype, 2.0**127))
        factor = 2.0 ** max(0, math.frexp(most / reach)[1] - 1)
        return fill._replace(low=fill.low * factor, high=fill.high * factor)
    low = max(low, SMALLEST_NORMAL.get(spec.dtype, 2.0**-126))
    signs = signs_of(fill)
    if fill.high <= 0:
        return fill
    return Fill(shared.MAGNITUDES, low, min(high, 1.0) if signs == SHARE else high, signs)


def nan(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `nan`."""
    if spec.dtype in COMPLEX and not traits.moves:
        return fill
    return Fill(shared.WITH_NAN, fill.low, fill.high, row_of(spec))


def infinity(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `infinity`."""
    if spec.dtype in COMPLEX and not traits.moves or fill.low >= 0:
        return fill
    return Fill(shared.WITH_INFINITY, fill.low, fill.high, row_of(spec))


def bulk(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `bulk`."""
    if spec.dtype in COMPLEX or fill.low >= 0:
        return fill
    return Fill(shared.CONSTANT, float("-inf"), float("-inf"), 0)


def exact(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `exact`."""
    signs = signs_of(fill)
    if signs == SHARE or fill.high <= 0:
        return fill
    low, high = (-3.0, 3.5) if signs == BOTH else (max(0.5, fill.low), 4.0)
    return Fill(shared.CORNERS, low, high, spec.size)


def constant(fill: Fill, spec: TensorSpec, traits: Traits) -> Fill:
    """The fill under `constant`: another number for each of three arguments."""
    share = 0.6 + 0.1 * (spec.index % 3)
    value = fill.low + share * (fill.high - fill.low)
    return Fill(shared.CONSTANT, value, value, 0)


def whole_change(spec: TensorSpec, regime: str, traits: Traits) -> Fill | None:
    """The fill of an integer tensor under a regime; None keeps the default."""
    if regime == "wide":
        if traits.products:  # half of the bits, so that no product overflows
            high = 2.0 ** (int(spec.dtype.lstrip("uint")) // 2 - 3)
            return Fill(shared.INTEGERS, 0.0 if spec.dtype.startswith("u") else -high, high, 0)
        return Fill(shared.MAGNITUDES, 0.0, HUGE, BOTH)
    unsigned = spec.dtype.startswith("u")
    if regime == "exact":
        return Fill(shared.INTEGERS, 0.0 if unsigned else -3.0, 4.0, 0)
    if regime == "bulk" and not unsigned:  # one sign: a 0 that nobody has written shows
        return Fill(shared.INTEGERS, -100.0, 0.0, 0)
    if regime == "infinity" and "bulk" not in traits.without:
        return Fill(shared.INTEGERS, 1.0, 100.0, 0)
    return None


def distinct_change(fill: Fill, spec: TensorSpec, regime: str) -> Fill:
    """Distinct integers under a regime. Wide ones are all positive, and too large for a float of few digits;
    exact ones are all negative. The usual ones have both signs."""
    unsigned = spec.dtype.startswith("u")
    bits = int(spec.dtype.lstrip("uint"))
    top = 2.0 ** (bits if unsigned else bits - 1)
    room = fill.extent + fill.extent % 2  # float64 has only even numbers from 2^53 on
    if regime == "exact" and not unsigned and fill.extent <= top:
        return fill._replace(low=-float(fill.extent), high=0.0)
    low = {64: 2.0**53, 32: 2.0**24}.get(bits, top - room)
    if regime == "wide" and low >= 0:
        return fill._replace(low=low, high=low + room)
    return fill


Change = Callable[[Fill, TensorSpec, Traits], Fill]
CHANGES: dict[str, Change] = {
    "wide": wide,
    "nan": nan,
    "infinity": infinity,
    "bulk": bulk,
    "exact": exact,
    SAME: constant,
}


def equalities_of(entry: Any, named: Mapping[str, Any], regime: str) -> tuple[str, ...]:
    """How the results of a call are compared (registry.EQUALITIES); empty means by value."""
    if entry is None or entry.equal:
        return entry.equal if entry is not None else ()
    traits = traits_of(entry)
    whole = ask(traits.whole, named, None) if callable(traits.whole) else traits.whole
    return ("bits",) if traits.moves or whole in (True, regime) else ()
