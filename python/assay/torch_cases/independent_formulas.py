"""Second opinions: formulas that do not call the function under test.

PyTorch's float64 shares the faults of a kernel that is one template for all dtypes. Where this table knows a
function, the reference of a torch case is the formula in float64 instead of PyTorch's own float64
(assay.torch_cases.oracle). Formulas of Paddle's references are used where the meaning is the same and the
reference does not call PyTorch's function of that name; the others are written here with other operations.

A formula gives None where it has no opinion, such as for complex numbers.
"""

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from assay.apis.loss import reduced
from assay.apis.normalization import scaled, standard
from assay.reference import torch
from assay.registry import REGISTRY, changes_input

MOST_PRODUCTS = 1 << 12  # of a matrix product that is added up element by element
Formula = Callable[..., Any]


def _full(name: str) -> str:
    return name.replace("F.", "torch.nn.functional.").replace("P.", "paddle.nn.functional.")


# PyTorch's name: Paddle's name, then PyTorch's parameters that Paddle calls otherwise.
_PADDLE = {
    _full(name): (_full(like), dict(pair.split("=") for pair in renamed))
    for name, like, *renamed in map(
        str.split,
        """\
F.selu P.selu input=x
F.l1_loss P.l1_loss target=label
F.mse_loss P.mse_loss target=label
F.huber_loss P.smooth_l1_loss target=label
F.gaussian_nll_loss P.gaussian_nll_loss target=label var=variance eps=epsilon
F.poisson_nll_loss P.poisson_nll_loss target=label eps=epsilon
F.hinge_embedding_loss P.hinge_embedding_loss target=label
F.layer_norm P.layer_norm input=x eps=epsilon
F.group_norm P.group_norm input=x eps=epsilon
F.pairwise_distance P.pairwise_distance x1=x x2=y eps=epsilon
F.bilinear P.bilinear input1=x1 input2=x2
F.pixel_shuffle P.pixel_shuffle input=x
F.pixel_unshuffle P.pixel_unshuffle input=x
F.channel_shuffle P.channel_shuffle input=x
torch.dist paddle.dist input=x other=y
torch.dot paddle.dot input=x tensor=y
torch.frac paddle.frac input=x
torch.nansum paddle.nansum input=x dim=axis
torch.trace paddle.trace input=x
torch.linalg.vecdot paddle.linalg.vecdot dim=axis
""".splitlines(),
    )
}
# By PyTorch's name without its namespace, also for methods and in-place forms.
_OWN: dict[str, Formula] = {}
_IGNORED = frozenset({"inplace", "out"})
_MADE = frozenset({"dtype", "layout", "device", "requires_grad", "pin_memory"})  # of a window
_OF_PARTS = frozenset({"add", "sub", "subtract"})  # formulas of the parts of complex numbers
_HOMES = "torch torch.Tensor torch.nn.functional torch.linalg torch.special torch.signal.windows".split()


def own(*names: str) -> Callable[[Formula], Formula]:
    """Registers a formula under PyTorch's names."""

    def register(formula: Formula) -> Formula:
        _OWN.update(dict.fromkeys(names, formula))
        return formula

    return register


def names() -> list[str]:
    """The last names of all functions with a formula."""
    return sorted({*_OWN, *(name.rpartition(".")[2] for name in _PADDLE)})


@cache
def formula_of(api: str, parameters: tuple[str, ...]) -> Formula | None:
    """The formula for a function of PyTorch, which takes the arguments by their names; None if there is
    none."""
    home, _, stem = api.rpartition(".")
    if home not in _HOMES:
        return None
    plain = stem[:-1] if changes_input(api) and not stem.endswith("__") else stem
    like, renamed = _PADDLE.get(api) or _PADDLE.get(f"torch.{plain}", ("", {}))
    formula = REGISTRY[like].call if like else _OWN.get(plain)
    if formula is None or not parameters:
        return None
    taken = tuple(inspect.signature(formula).parameters)
    if "x" in taken and "x" not in parameters:
        renamed = {next((name for name in parameters if name not in taken), ""): "x"} | renamed
    if not like and "y" in taken:
        renamed |= dict.fromkeys(("other", "mat2", "n"), "y")
    window = home == "torch.signal.windows" or plain.endswith("_window")
    ignored = _IGNORED | _MADE if window else _IGNORED

    def evaluate(named: dict[str, Any]) -> Any:
        tensors = [each for name, each in named.items() if isinstance(each, torch.Tensor) and name != "out"]
        floating = any(tensor.is_floating_point() for tensor in tensors)
        if not (floating or window or plain in _OF_PARTS and tensors):
            return None
        if plain not in _OF_PARTS and any(tensor.is_complex() for tensor in tensors):
            return None
        given = {
            renamed.get(name, name): value
            for name, value in named.items()
            if name not in ignored and (value is not None or name in taken)
        }
        return None if given.keys() - {*taken} else formula(**given)

    return evaluate


@own("hardswish")
def _hardswish(x: Any) -> Any:
    """At the knees the gradient is that beyond them: 0 and 1."""
    between = x * (x + 3).clamp(0, 6) / 6
    return torch.where(x == -3, 0, torch.where(x >= 3, x, between))


@own("sigmoid", "expit")
def _sigmoid(x: Any) -> Any:
    small = torch.exp(-x.abs())
    return torch.where(x < 0, small, 1) / (1 + small)


@own("gelu")
def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * torch.special.erfc(-x / math.sqrt(2)) / 2
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


@own("softplus")
def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    scaled = x * beta
    return torch.where(scaled > threshold, x, torch.logaddexp(scaled, torch.zeros_like(x)) / beta)


def _elu_of(x: Any, alpha: float, inner: float) -> Any:
    return torch.where(x > 0, x, alpha * torch.expm1(x.clamp(max=0) / inner))


@own("glu")
def _glu(x: Any, dim: int = -1) -> Any:
    left, right = x.tensor_split(2, dim)
    return left * _sigmoid(right)


def _shares(x: Any, dim: int) -> tuple[Any, Any, Any]:
    """Differences from the maximum, their exponentials, and the sums of those."""
    below = x - x.detach().amax(dim, keepdim=True)
    powers = torch.exp(below)
    return below, powers, powers.sum(dim, keepdim=True)


def _in(x: Any, dtype: Any) -> Any:
    return x if dtype is None else x.to(dtype)


@own("softmax")
def _softmax(x: Any, dim: int, dtype: Any = None, _stacklevel: int = 3) -> Any:
    x = _in(x, dtype)
    if not x.numel():
        return None
    _, powers, sums = _shares(x, dim)
    return powers / sums


@own("log_softmax")
def _log_softmax(x: Any, dim: int, dtype: Any = None, _stacklevel: int = 3) -> Any:
    x = _in(x, dtype)
    if not x.numel():
        return None
    below, _, sums = _shares(x, dim)
    return below - torch.log(sums)


@own("rms_norm")
def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    squares = torch.square(x).mean(list(range(-len(normalized_shape), 0)), keepdim=True)
    y = x * torch.rsqrt(squares + eps)
    return y if weight is None else y * weight


@own("instance_norm")
def _instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if running_mean is not None or not use_input_stats:
        return None
    return scaled(standard(x.flatten(2), [-1], eps).reshape(x.shape), weight, bias)


@own("smooth_l1_loss")
def _smooth_l1_loss(x: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    if not beta:
        return None
    error = torch.abs(x - target)
    return reduced(torch.where(error < beta, error * error / 2 / beta, error - beta / 2), reduction)


@own("linear")
def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    if weight.ndim != 2:
        return None
    product = _matmul(x if x.ndim > 1 else x[None], weight.mT)
    if product is None:
        return None
    product = product if x.ndim > 1 else product[0]
    return product if bias is None else product + bias


@own("matmul", "mm", "bmm")
def _matmul(x: Any, y: Any) -> Any:
    """Sums of products, without a kernel for matrices."""
    if min(x.ndim, y.ndim) < 2 or x.numel() * y.shape[-1] > MOST_PRODUCTS:
        return None
    if not x.is_floating_point() or x.shape[-1] != y.shape[-2]:
        return None
    return (x[..., :, None, :] * y.mT[..., None, :, :]).sum(-1)


def _rows(weight: Any, x: Any, scale_grad_by_freq: bool) -> Any:
    """The rows of `weight`; their gradients are divided by how often each row occurs, if that is asked."""
    rows = weight[x]
    if scale_grad_by_freq and rows.requires_grad:
        times = torch.bincount(x.flatten(), minlength=len(weight))[x]
        rows.register_hook(lambda gradient: gradient / times[..., None])
    return rows


@own("embedding")
def _embedding(
    x: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    if padding_idx is not None or max_norm is not None or sparse:
        return None
    return _rows(weight, x, scale_grad_by_freq)


@own("embedding_bag")
def _embedding_bag(
    x: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    if not x.numel() or max_norm is not None or padding_idx is not None or sparse or mode == "max":
        return None
    rows = _rows(weight, x, scale_grad_by_freq)
    rows = rows if per_sample_weights is None else rows * per_sample_weights[..., None]
    if x.ndim == 2:
        return rows.sum(1) if mode == "sum" else rows.mean(1)
    if offsets is None:
        return None
    ends = offsets[1:] if include_last_offset else torch.cat([offsets[1:], offsets.new_tensor([len(x)])])
    starts = offsets[: len(ends)]
    place = torch.arange(len(x), device=x.device)
    inside = (place >= starts[:, None]) & (place < ends[:, None])
    sums = torch.where(inside[..., None], rows, 0).sum(1)
    return sums if mode == "sum" else sums / (ends - starts).clamp(min=1)[:, None]


def _scaled(beta: float, x: Any, product: Any, alpha: float) -> Any:
    """beta · x + alpha · product. As documented, beta = 0 hides NaN and infinity of x."""
    if product is None:
        return None
    return alpha * product + (beta * x if beta else torch.zeros_like(x))


@own("addmv")
def _addmv(x: Any, mat: Any, vec: Any, beta: float = 1, alpha: float = 1) -> Any:
    product = _matmul(mat, vec[:, None])
    return _scaled(beta, x, None if product is None else product[:, 0], alpha)


@own("add")
def _add(x: Any, y: Any, alpha: float = 1) -> Any:
    """By parts: a product with 1 + 0i has NaN beside an infinity."""
    if not (isinstance(y, torch.Tensor) and x.is_complex() and y.is_complex()) or isinstance(alpha, complex):
        return None
    return torch.view_as_complex(torch.view_as_real(x) + alpha * torch.view_as_real(y))


@own("vector_norm")
def _vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The largest number is factored out, so that no square overflows."""
    if not x.numel() or dtype is not None:
        return None
    scale = x.detach().abs().amax(() if dim is None else dim, keepdim=True)
    scale = torch.where(scale.isfinite() & (scale > 0), scale, 1)
    found = torch.linalg.vector_norm(x / scale, ord, dim, keepdim)
    return found * scale.reshape(found.shape) if ord else found


def _first(x: Any, extreme: Any, dim: int | None, keepdim: bool) -> Any:
    """The index of the first element that equals the extreme; NaN is the extreme of all."""
    if not x.numel() or not x.ndim:
        return None
    flat, axis = (x.flatten(), 0) if dim is None else (x, dim % x.ndim)
    shape = [1] * flat.ndim
    shape[axis] = -1
    place = torch.arange(flat.shape[axis], device=x.device).reshape(shape)
    wanted = (flat == extreme(flat, axis, keepdim=True)) | flat.isnan()
    wanted = torch.where(flat.isnan().any(axis, keepdim=True), flat.isnan(), wanted)
    found = torch.where(wanted, place, flat.shape[axis]).amin(axis, keepdim=keepdim or dim is None)
    return found.reshape([1] * x.ndim if keepdim else []) if dim is None else found


def _picked(log_p: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Minus the entry of each row of `log_p`, classes second, that its class selects."""
    kept = target != ignore_index
    target = torch.where(kept, target, 0)
    factor = torch.where(kept, 1 if weight is None else weight.detach()[target], 0)
    loss = torch.where(kept, -log_p.gather(1, target[:, None]).squeeze(1) * factor, 0)
    return loss.sum() / factor.sum(dtype=log_p.dtype) if reduction == "mean" else reduced(loss, reduction)


@own("nll_loss")
def _nll_loss(
    x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
) -> Any:  # fmt: skip
    if x.ndim < 2 or not x.numel() or target.is_floating_point():
        return None
    return _picked(x, target, weight, ignore_index, reduction)


@own("cross_entropy")
def _cross_entropy(
    x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if x.ndim < 2 or not x.numel() or target.is_floating_point() or label_smoothing:
        return None
    return _picked(_log_softmax(x, 1), target, weight, ignore_index, reduction)


_SHORT: dict[str, Formula] = {
    "relu": lambda x: torch.where(x <= 0, 0, x),
    "relu6": lambda x: torch.where(x <= 0, 0, torch.where(x >= 6, 6, x)),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: torch.where(
        x <= min_val, min_val, torch.where(x >= max_val, max_val, x)
    ),
    "hardsigmoid": lambda x: torch.where(x <= -3, 0, torch.where(x >= 3, 1, (x + 3) / 6)),
    "leaky_relu": lambda x, negative_slope=0.01: torch.where(x > 0, x, x * negative_slope),
    "threshold": lambda x, threshold, value: torch.where(x <= threshold, value, x),
    "hardshrink": lambda x, lambd=0.5: torch.where(x.abs() <= lambd, 0, x),
    "softshrink": lambda x, lambd=0.5: torch.where(
        x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, x * 0)
    ),
    "silu": lambda x: x * _sigmoid(x),
    "elu": lambda x, alpha=1.0: _elu_of(x, alpha, 1.0),
    "celu": lambda x, alpha=1.0: _elu_of(x, alpha, alpha),
    "softmin": lambda x, dim, dtype=None, _stacklevel=3: _softmax(-_in(x, dtype), dim),
    "addmm": lambda x, mat1, mat2, beta=1, alpha=1: _scaled(beta, x, _matmul(mat1, mat2), alpha),
    "baddbmm": lambda x, batch1, batch2, beta=1, alpha=1: _scaled(beta, x, _matmul(batch1, batch2), alpha),
    "addr": lambda x, vec1, vec2, beta=1, alpha=1: _scaled(beta, x, vec1[:, None] * vec2, alpha),
    "heaviside": lambda x, values: torch.where(
        x == 0, values, torch.where(x.isnan(), x, (x > 0).to(x.dtype))
    ).detach(),
    "sub subtract": lambda x, y, alpha=1: _add(x, y, -alpha),
    "ldexp": lambda x, y: x * torch.exp2(y.double()),
    "argmax": lambda x, dim=None, keepdim=False: _first(x, torch.amax, dim, keepdim),
    "argmin": lambda x, dim=None, keepdim=False: _first(x, torch.amin, dim, keepdim),
}
for _names, _formula in _SHORT.items():
    own(*_names.split())(_formula)
