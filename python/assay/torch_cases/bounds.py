"""What PyTorch does not promise, and how its functions round: value regimes without a verdict, traits of
error bars, and value rules that avoid the limits of half precision."""

from math import isfinite, nan
from typing import Any

from assay.apis.norms import of_matrix
from assay.regimes import HALF
from assay.rules import Literal, halves, integers, positive, uniform
from assay.shorthand import special
from assay.spec import COMPLEX, INTEGER
from assay.torch_cases.tables import TABLE, known

__all__ = ["TABLE"]

_CONVERTED = dict.fromkeys(
    ("wide", "nan", "infinity", "bulk"), "conversions of numbers that an integer cannot hold are undefined"
)
known("byte char short int long", undefined=_CONVERTED)
_TIES = dict.fromkeys(
    ("infinity", "bulk", "exact"), "which of several equal elements is selected is not specified"
)
_NANS = "which of several NaN is selected is not specified"
known("median", undefined=_TIES | {"nan": lambda dim=None: "" if dim is None else _NANS})
known("nanmedian", undefined=_TIES)
for _rank in (1, 2, 3):
    known(
        f"max_pool{_rank}d_with_indices adaptive_max_pool{_rank}d_with_indices",
        undefined={regime: _TIES[regime] for regime in ("infinity", "bulk")},
    )
known(
    "mode", grad=False, undefined={"nan": "which of the numbers beside NaN is most frequent is not specified"}
)
known("zeta", undefined=dict.fromkeys(("wide", "exact"), "the series is cut by the dtype"))


def _reflects(padding_mode: Any) -> bool:
    return padding_mode in (2, "reflection")


def _of_coordinates(x: Any, padding_mode: Any = 0) -> float:
    """A coordinate's error in ulps. Reflections multiply it."""
    return (16.0 if _reflects(padding_mode) else 1.0) * max(x.shape[2:], default=1)


def _nearest(x: Any, mode: str = "", interpolation_mode: int = 0, padding_mode: Any = 0) -> str:
    if x.dtype == "float64":
        return "weights of rounded coordinates are as precise as the truth"
    nearest = mode == "nearest" or interpolation_mode == 1
    jumps = nearest and _reflects(padding_mode) and x.dtype in HALF
    return "a coordinate that is rounded to half precision selects another neighbour" if jumps else ""


known(
    "grid_sampler grid_sampler_2d grid_sampler_3d grid_sample",
    traits={"coordinates": _of_coordinates},
    undefined={"exact": _nearest},
)


def _exponent(p: Any = 2) -> float:
    """Gradients of norms take this power of the norm, which is rounded."""
    return max(1.0, abs(p - 1)) if isinstance(p, int | float) and isfinite(p) else 1.0


def _singular(p: Any, axis: Any) -> str:
    return "singular values are accurate to an ulp of the largest one" if of_matrix(p, axis) else ""


def _axes(x: Any, axis: Any) -> Any:
    """The axes of torch.linalg.norm, which takes the norm of a matrix also without axes."""
    return (0, 1) if axis is None and len(x.shape) == 2 else axis


def _of_vectors(x: Any, p: Any = 2, axis: Any = (-2, -1)) -> float:
    """The gradient of a spectral norm multiplies singular vectors."""
    return 8.0 if of_matrix(p, _axes(x, axis)) else _exponent(p)


def _root(p: Any = 2) -> float:
    """Norms of small orders are high powers of a sum."""
    return max(1.0, 1 / abs(p)) if isinstance(p, int | float) and p else 1.0


# Half precision rounds the sums that maxima choose from.
_NORM = {"in_float32": False, "scale": _root, "scale_back": _exponent}
known("norm vector_norm matrix_norm normalize dist", traits=_NORM)
_SINGULAR = ("wide", "exact")
known("norm", undefined=dict.fromkeys(_SINGULAR, lambda p=None, axis=None: _singular(p, axis)))
known(
    "matrix_norm",
    traits=_NORM | {"scale_back": _of_vectors},
    undefined=dict.fromkeys(_SINGULAR, lambda p=None, axis=(-2, -1): _singular(p, axis)),
)
known(
    "torch.linalg.norm",
    traits=_NORM
    | {
        "spectral": lambda x, p=None, axis=None: of_matrix(p, _axes(x, axis)),
        "scale_back": lambda x, p=None, axis=None: _of_vectors(x, p, axis),
    },
    undefined=dict.fromkeys(_SINGULAR, lambda x, p=None, axis=None: _singular(p, _axes(x, axis))),
)


def _pairs(x: Any) -> str:
    """Normalized, two samples are 1 and -1, whatever they are; kernels subtract their rounded mean times a
    factor."""
    return "two samples cancel" if len(x.shape) > 1 and x.size <= 2 * x.shape[1] else ""


def _of_channel(x: Any, training: bool = False, train: bool = False) -> float | None:
    """Channels last, the samples of a channel are added up one after the other."""
    return x.size / max(1, x.shape[1]) if x.strides and (training or train) else None


known(
    "batch_norm native_batch_norm _native_batch_norm_legit _batch_norm_with_update",
    traits={"terms": _of_channel, "terms_back": _of_channel},
    undefined={"wide": _pairs},
)


def _powers(dtype: str | None = None) -> float:
    """The error in ulps of a power whose exponent is rounded. Complex powers are made of exp and log."""
    return 4.0 if dtype in HALF | COMPLEX else 1.0


def _few(this: Any) -> Any:
    return integers(-2, 4) if this.dtype in INTEGER else uniform(-2, 2)


known("logspace", traits={"coordinates": _powers}, start=_few, end=_few)
known("histogram", traits={"coordinates": lambda density=False: 16.0 if density else 1.0})  # edges cancel
known(
    "cov",
    traits={"scale_back": lambda aweights=None: 1.0 if aweights is None else 4.0},  # their sums cancel
    undefined={
        "wide": lambda aweights=None, fweights=None: (
            "" if aweights is None and fweights is None else "squares times weights overflow"
        ),
        "exact": lambda x: "the parts of a complex infinity are not specified" if x.dtype in COMPLEX else "",
    },
)


known(
    "matrix_exp",
    traits={"scale": 4.0},
    undefined={"wide": "squarings multiply the error of the largest element"},
)


def _multiplies(x: Any, compute_mode: str = "") -> bool:
    """Whether distances are computed by a matrix product, whose terms cancel."""
    return (
        compute_mode == "use_mm_for_euclid_dist" or x.shape[-2] > 25 and not compute_mode.startswith("donot")
    )


def _of_product(x: Any, compute_mode: str = "") -> float:
    return 64.0 if _multiplies(x, compute_mode) else 1.0


known(
    "cdist",
    traits={"scale": _of_product, "scale_back": _of_product},
    undefined={
        "wide": lambda x, compute_mode="": "distances cancel" if _multiplies(x, compute_mode) else "",
    },
)


def _logarithms(x: Any, log_input: bool = True) -> str:
    return "" if log_input or x.dtype not in HALF else "terms of half precision cancel"


known("poisson_nll_loss", undefined={"exact": _logarithms})
known(
    "cosine_similarity",
    undefined={"exact": lambda x: "half precision cannot hold squares of 1e-5" if x.dtype in HALF else ""},
)


def _times(value: float = 1) -> str:
    return "" if abs(value) in (0, 1) else "a factor times a tensor may overflow or underflow in between"


def _quotient(x: Any, rounding_mode: Any = None) -> str:
    return "a rounded quotient may be the next whole number" if rounding_mode and x.dtype in HALF else ""


known(
    "bilinear",
    traits={"in_float32": False, "scale": 2.0},  # half precision rounds the inner products
    undefined={"infinity": "the order of the three factors decides whether infinities cancel"},
)
known(
    "std_mean var_mean",
    undefined={"infinity": "the mean of infinities is NaN where it is computed along with the variance"},
)
known("addcdiv addcdiv_", undefined={"wide": _times}, tensor2=positive(0.5, 1.5))
known("addcmul addcmul_", undefined={"wide": _times})
known("index_add index_add_", undefined={"wide": lambda alpha=1: _times(alpha)})
known(
    "vander",
    undefined={"exact": lambda x, N=None: "high powers overflow" if (N or x.shape[-1]) > 32 else ""},
)
known("div div_ divide divide_", undefined=dict.fromkeys(("nan", "infinity"), _quotient))
# A gradient adds up pairs of classes, which shapes do not show.
known("multilabel_margin_loss", traits={"chained": True})
known(
    "triplet_margin_loss triplet_margin_with_distance_loss",
    undefined={"exact": "distances are rounded before one is subtracted from the other"},
)
known("gaussian_nll_loss", traits={"scale_back": 4.0})  # float16 adds up subnormal numbers
known(
    " ".join(f"{scaled}modified_bessel_k{order}" for scaled in ("", "scaled_") for order in (0, 1)),
    traits={"near_one": 6.0, "near_one_back": 6.0},  # a logarithm and a series cancel
)


def _number(weight: Any) -> str:
    return (
        "a weight that the dtype cannot hold cancels" if isinstance(weight, float) and weight * 64 % 1 else ""
    )


# A complex weight is rounded, and its products cancel.
known("lerp lerp_", traits={"near_one": 0.5, "near_one_back": 1.0}, undefined={"exact": _number})
# An exponential times a polynomial; the logarithm of a sum near 1; a polynomial that log(x) is added to.
known(
    "erfcx logaddexp logaddexp2 bessel_y0 bessel_y1 modified_bessel_i1",
    traits={"near_one": 1.0, "near_one_back": 1.0},
)
# Reciprocals are added to a series, one after the other.
known("digamma digamma_", traits={"near_one": 5.0, "terms": 4.0})
known("polygamma polygamma_", traits={"near_one": 6.0})
known("gammainc gammaincc igamma igamma_ igammac igammac_", traits={"near_one": 1.0})  # one of them from 1
# A gradient adds up where windows overlap, and terms cancel.
known("as_strided as_strided_copy unfold unfold_copy", traits={"near_one_back": 0.25})
known(
    "as_strided as_strided_ as_strided_copy as_strided_scatter native_group_norm",
    undefined={"layout": "the operator is defined by the memory of its input"},
)
# A slope is a difference of reciprocals and a logarithm, or a quotient of small numbers.
known("lgamma lgamma_ mvlgamma mvlgamma_", traits={"near_one_back": 2.0})
known("log_ndtr", traits={"near_one_back": 6.0})
known("ndtri", traits={"terms_back": 4.0, "scale_back": 4.0})  # a slope is the exponential of a square
known("tan tan_", traits={"near_one_back": 1.0})
# Quotients by squares, which half precision rounds; some are subnormal.
known("atan2 atan2_ arctan2 arctan2_ hypot hypot_", traits={"near_one_back": 2.0**-10})


def _of_steps(x: Any, axis: int = 0) -> float:
    """The floor in ulps of the largest element: a GPU rounds running products of half precision after each
    step."""
    return max(1.0, (x.shape[axis] if x.shape else 1) ** 0.5 / 2) if x.dtype in HALF else 1.0


def _overflows(x: Any) -> str:
    """Every ninth real factor is zero, but only every 81st complex one. A GPU also multiplies blocks that the
    result would skip after a zero."""
    overflows = x.size > 32 and (x.dtype in COMPLEX or x.dtype == "float16")
    return "products overflow before a zero follows" if overflows else ""


known(
    "cumprod cumprod_", traits={"scale": _of_steps, "scale_back": _of_steps}, undefined={"exact": _overflows}
)
known("prod", undefined={"exact": _overflows})
# A GPU adds numbers of half precision in memory, one after the other.
_ADDED_UP = "sum", "mean", "prod"


def _in_memory(x: Any, reduce: str = "sum") -> float:
    return 4.0 if x.dtype in HALF and reduce in _ADDED_UP else 1.0


known(
    "index_add index_add_ index_reduce index_reduce_ scatter_add scatter_add_ scatter_reduce scatter_reduce_",
    traits={"sums": True, "scale": _in_memory},
)
known("cond", traits={"scale_back": 16.0})  # products of singular vectors

# -- values --


def _factors(this: Any, reduce: str = "") -> Any:
    """Near 1 for products, so that half precision holds them and their gradients."""
    return positive(0.5, 1.5) if reduce == "prod" and this.dtype in HALF else None


known(
    "index_reduce index_reduce_ scatter_reduce scatter_reduce_",
    input=_factors, self=_factors, source=_factors, src=_factors,
)  # fmt: skip


def _argument(this: Any, n: int = 1) -> Any:
    """Where float16 holds the derivative: polygamma(5, 0.2) is 2e6."""
    return positive(1, 5) if this.dtype == "float16" and n > 1 else positive(0.2, 5)


def _signs(this: Any) -> Any:
    """The labels of the documentation: 1 and -1."""
    return Literal([1 - place * 5 % 8 // 4 * 2 for place in range(this.size)])


def _ascending(this: Any) -> Any:
    """Coordinates whose differences are about 1."""
    return Literal([place + place * 5 % 8 / 16 for place in range(this.size)]) if this.shape else None


known("gradient", spacing=_ascending)
known("polygamma polygamma_", input=_argument, self=_argument)
known("__rpow__", other=lambda this: integers(1, 5) if this.dtype in INTEGER else positive(0.5, 2))
known("hinge_embedding_loss", target=_signs)
_NORMS = {"wide": "squares of the norm that max_norm bounds overflow"}
_BEYOND = "a known bug reads NaN beyond the end of the last bag"
known("embedding", undefined=_NORMS)
known(
    "embedding_bag",
    undefined=_NORMS | {"nan": lambda include_last_offset=False: _BEYOND if include_last_offset else ""},
)

# What is documented, or where a factor overflows before the result does.


def _under(regime: str, rule: Any) -> dict[str, Any]:
    return {regime: {"input": rule, "self": rule}}


# The first of equal elements; integers of one sign.
_NEGATIVE = {"bulk": {"input": lambda this: integers(-100, 0) if this.dtype in INTEGER - {"uint8"} else None}}
_NEGATIVE["bulk"]["self"] = _NEGATIVE["bulk"]["input"]
known("argmax argmin", regimes=_under("exact", halves()) | _NEGATIVE)
known("heaviside", regimes=_under("nan", special(nan, 0.0, -1.0, 2.0)))
known("neg neg_ negative negative_", traits={"whole": True})
