"""What assay knows of PyTorch's functions beyond Paddle's tables: distributions of draws, value rules, and
what is not promised. Functions are named by their last name, or in full where names differ in meaning."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from math import prod
from typing import Any

from assay import draw_distribution
from assay.apis.decomposition import SPECTRAL, lopsided, singular_parts
from assay.apis.dropout import PROBABILITY, alpha, together
from assay.apis.random import SHARE, _normal
from assay.arguments import as_ints
from assay.reference import common_shape, torch
from assay.registry import Api
from assay.rules import Literal, constant, distinct, increasing, integers, literal, positive, uniform
from assay.shared import MOST_ELEMENTS
from assay.wire import UNSUPPORTED, Stop

# Options of registry.Api by name; "call" is a reference that takes the function's arguments.
TABLE: dict[str, dict[str, Any]] = {}
_OPTIONS = frozenset(field.name for field in fields(Api))


def known(names: str, **options: Any) -> Callable[[Any], Any]:
    """Registers options and value rules by parameter, and as a decorator also a reference."""
    rules = {name: options.pop(name) for name in [*options] if name not in _OPTIONS}
    for name in names.split():
        entry = TABLE.setdefault(name, {})
        entry |= options | {"rules": entry.get("rules", {}) | rules}

    def register(call: Any) -> Any:
        for name in names.split():
            TABLE[name]["call"] = call
        return call

    return register


# -- draws --

_DRAWN = {"family": "random", "grad": False}


def _drawn(names: str, **options: Any) -> Callable[[Any], Any]:
    return known(names, **{**_DRAWN, **options})


def _shape(sizes: Sequence[Any]) -> list[int]:
    """A shape that is one argument or several."""
    return as_ints(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes)


@_drawn("torch.rand")
def _rand(*size, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, **_):
    return draw_distribution.uniform_draw(0.0, 1.0, _shape(size), dtype or torch.float32)


@_drawn("torch.randn")
def _randn(*size, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, **_):
    return _normal(0.0, 1.0, _shape(size), dtype or torch.float32)


@_drawn("torch.rand_like")
def _rand_like(input, *, generator=None, dtype=None, **_):
    return draw_distribution.uniform_draw(0.0, 1.0, input.shape, dtype or input.dtype)


@_drawn("torch.randn_like")
def _randn_like(input, *, generator=None, dtype=None, **_):
    return _normal(0.0, 1.0, input.shape, dtype or input.dtype)


@_drawn("torch.randint")
def _randint(low, high, size=None, *, dtype=None, **_):
    low, high, size = (0, low, high) if size is None else (low, high, size)
    return draw_distribution.integer_draw(low, high, as_ints(size), dtype or torch.int64)


@_drawn("torch.randint_like")
def _randint_like(input, low, high=None, *, dtype=None, **_):
    low, high = (0, low) if high is None else (low, high)
    return draw_distribution.integer_draw(low, high, input.shape, dtype or input.dtype)


@_drawn("torch.randperm")
def _randperm(n, *, dtype=None, **_):
    return draw_distribution.permutation(n, dtype or torch.int64)


@_drawn("torch.normal", std=positive())
def _normal_of(mean, std=1.0, size=None, *, generator=None, dtype=None, **_):
    tensors = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
    shape = common_shape(*(each.shape for each in tensors)) if tensors else as_ints(size)
    mean, std = (each.expand(shape) if isinstance(each, torch.Tensor) else each for each in (mean, std))
    return _normal(mean, std, shape, dtype or (tensors[0].dtype if tensors else torch.float32))


@_drawn("torch.bernoulli torch.Tensor.bernoulli", input=SHARE, self=SHARE)
def _bernoulli(input, p=None, *, generator=None):
    return draw_distribution.bernoulli_draw(input if p is None else p, input.shape, input.dtype)


@_drawn("torch.Tensor.bernoulli_", p=SHARE)
def _bernoulli_(self, p=0.5, *, generator=None):
    p = p.expand(self.shape) if isinstance(p, torch.Tensor) else p
    return draw_distribution.bernoulli_draw(p, self.shape, self.dtype)


@_drawn("torch.Tensor.uniform_")
def _uniform_(self, low=0.0, high=1.0, *, generator=None, **named):
    return draw_distribution.uniform_draw(
        named.get("from", low), named.get("to", high), self.shape, self.dtype
    )


@_drawn("torch.Tensor.normal_")
def _normal_(self, mean=0.0, std=1.0, *, generator=None):
    if self.dtype.is_complex and mean:
        raise Stop(UNSUPPORTED, "the documentation does not say what the mean of a complex draw is")
    return _normal(mean, std, self.shape, self.dtype)


@_drawn("torch.Tensor.log_normal_")
def _log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    return draw_distribution.log_normal_draw(mean, std, self.shape, self.dtype)


@_drawn("torch.Tensor.exponential_")
def _exponential_(self, lambd=1.0, *, generator=None):
    return draw_distribution.exponential_draw(lambd, self.shape, self.dtype)


@_drawn("torch.Tensor.cauchy_")
def _cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    return draw_distribution.cauchy_draw(median, sigma, self.shape, self.dtype)


@_drawn("torch.Tensor.geometric_")
def _geometric_(self, p, *, generator=None):
    return draw_distribution.geometric_draw(p, self.shape, self.dtype)


@_drawn("torch.poisson", input=positive(0.5, 5.0))
def _poisson(input, generator=None):
    return draw_distribution.poisson_draw(input, input.shape, input.dtype)


@_drawn("torch.binomial", count=integers(1, 20), prob=SHARE)
def _binomial(count, prob, generator=None):
    shape = common_shape(count.shape, prob.shape)
    return draw_distribution.binomial_draw(count.expand(shape), prob.expand(shape), shape, count.dtype)


@_drawn(
    "torch.multinomial torch.Tensor.multinomial", input=increasing(0.05, 1.05), self=increasing(0.05, 1.05)
)
def _multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    return draw_distribution.categorical_draw(
        input, (*input.shape[:-1], num_samples), torch.int64, replacement
    )


@known("torch.nn.functional.dropout", family="dropout", p=PROBABILITY)
def _dropout(input, p=0.5, training=True, inplace=False):
    if not training or p in (0, 1):
        return input * (1 - p if training else 1)
    return draw_distribution.kept(input / (1 - p), 1 - p)


def _channels(input, p=0.5, training=True, inplace=False, *, unbatched):
    """Whole channels are dropped together; without a batch the first axis has the channels."""
    if not training or p in (0, 1):
        return input * (1 - p if training else 1)
    axes = [0] if input.ndim == unbatched else [0, 1]
    return draw_distribution.kept(input / (1 - p), 1 - p, together(input, axes))


# Of dropout2d a tensor of three axes is a batch of one-dimensional channels (a warning says so).
for _rank, _unbatched in ((1, 2), (2, 0), (3, 4)):
    _function = known(f"torch.nn.functional.dropout{_rank}d", family="dropout")
    _function(partial(_channels, unbatched=_unbatched))


# -- memory that nobody has written --


@known(
    "torch.empty torch.empty_like torch.Tensor.new_empty torch.empty_permuted", family="creation", grad=False
)
def _empty(first, *sizes, size=None, dtype=None, **_):
    if isinstance(first, torch.Tensor):
        shape = _shape(sizes) if sizes or size is not None else list(first.shape)
        return draw_distribution.anything(shape if size is None else as_ints(size), dtype or first.dtype)
    return draw_distribution.anything(_shape((first, *sizes)), dtype or torch.float32)


@known("torch.empty_strided torch.empty_permuted", family="creation", grad=False)
def _empty_strided(size, order, *, dtype=None, **_):
    return draw_distribution.anything(as_ints(size), dtype or torch.float32)


@known("torch.Tensor.new_empty_strided", family="creation", grad=False)
def _new_empty_strided(self, size, stride, *, dtype=None, **_):
    return draw_distribution.anything(as_ints(size), dtype or self.dtype)


@known("torch.nn.functional.alpha_dropout", family="dropout")
def _alpha_dropout(input, p=0.5, training=False, inplace=False):
    return alpha(input, p, training)


@known("torch.nn.functional.feature_alpha_dropout", family="dropout")
def _feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    return alpha(input, p, training, together(input, (0, 1)) if input.ndim > 1 else 0)


known("rrelu rrelu_ svd_lowrank pca_lowrank", skip="assay has no distribution for the draws of this function")


def _samples(this: Any) -> Any:
    """Shares whose multiples are no whole numbers, where regions would jump."""
    return Literal([(place * 5 % 16) / 16 + 1 / 37 for place in range(this.size)])


def _in_planes(found: Any, given: dict[str, Any], axes: int) -> Any:
    """The result. If it depends on drawn regions: its shape, and whether each maximum is an element of its
    plane, at its index."""
    if given.get("_random_samples") is not None:
        return found
    values, *index = found if isinstance(found, list | tuple) else (found,)
    planes, flat = given["input"].flatten(-axes), values.flatten(-axes)
    if index:
        right = planes.gather(-1, index[0].flatten(-axes)) == flat
    else:
        right = (planes[..., None, :] == flat[..., None]).any(-1)
    return {"shape": list(values.shape), "elements of their planes": bool(right.all())}


for _axes in (2, 3):
    _pool = f"fractional_max_pool{_axes}d"
    known(  # a function that chooses one of two
        _pool,
        parameters=(
            "input", "kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples",
        ),
    )  # fmt: skip
    known(
        f"{_pool} {_pool}_with_indices",
        shown=partial(_in_planes, axes=_axes),
        family="pooling",
        _random_samples=_samples,
        input=distinct(),
        grad=False,
    )
_RANGES = {"wide": "the steps of a range cancel"}
known("linspace logspace", undefined=_RANGES)

# -- indices --


def _extent(x: Any, axis: Any = 0) -> int:
    return x.shape[axis] if x.shape and isinstance(axis, int) else max(1, x.size)


def _apart(this: Any, x: Any, axis: int = 0) -> Any:
    """Indices from the end, no two of a row equal: which of two writes to one place wins is not promised."""
    extent, axis = _extent(x, axis), axis % max(1, this.ndim)
    step = prod(this.shape[axis + 1 :])
    length = this.shape[axis] if this.shape else 1
    if this.size > MOST_ELEMENTS or length > extent:
        return integers(0, extent)
    return Literal([extent - 1 - place // step % length for place in range(this.size)])


def _anywhere(this: Any, x: Any, accumulate: bool = False) -> Any:
    """Indices into all elements, half of them from the end; no two equal, unless equal ones are added up."""
    if accumulate or this.size > min(x.size, MOST_ELEMENTS):
        return integers(-x.size, max(1, x.size))
    return Literal([-1 - place if place % 2 else x.size - 1 - place for place in range(this.size)])


def _both_ways(x: Any, axis: Any = None) -> Any:
    """Indices from the start and from the end."""
    extent = _extent(x, axis)
    return integers(-extent, extent) if extent else integers(0, 1)


_INDEX = integers(0, _extent)
known("index_copy index_copy_", family="gather_scatter", index=_apart)
known("index_fill index_fill_", family="gather_scatter", index=lambda x, axis=0: _both_ways(x, axis))
known(
    "index_add index_add_ index_reduce index_reduce_ index_select gather",
    family="gather_scatter",
    index=_INDEX,
)
known("scatter scatter_", family="gather_scatter", index=_apart)
known("scatter_add scatter_add_ scatter_reduce scatter_reduce_", family="gather_scatter", index=_INDEX)
known("put put_", family="gather_scatter", index=_anywhere)
known("take", family="gather_scatter", index=lambda x: _both_ways(x))
known(  # places of the flattened tensor count from its start only
    "take_along_dim",
    family="gather_scatter",
    indices=lambda x, axis=None: _INDEX if axis is None else _both_ways(x, axis),
)


def _starts(this: Any, input: Any, include_last_offset: bool = False) -> Any:
    """The first place of each bag, and the end of the last one, before the last index, if that is asked."""
    bags = max(1, this.size - include_last_offset)
    size = input.size - (include_last_offset and input.size > this.size)
    return Literal([place * size // bags for place in range(this.size)])


def _repeats(this: Any, output_size: int | None = None) -> Any:
    """Few, or as many as the result holds."""
    if output_size is None:
        return integers(0, 4)
    return Literal(
        [output_size // this.size + (place < output_size % this.size) for place in range(this.size)]
    )


known("embedding_bag", offsets=_starts)
known(
    "torch.embedding_bag",
    family="embedding",
    aliases={"input": "indices"},
    indices=integers(0, lambda weight: weight.shape[0]),
    offsets=_starts,
    shown=lambda found, given: found[0],
)
known("repeat_interleave", repeats=_repeats)


def _places(x: Any) -> Any:
    extent = max(1, min(x.shape, default=1))
    return integers(-extent, extent)


known("__getitem__ __setitem__", parameters=("self", "index", "value"), index=_places)


def _repeated(x: Any, index: Any) -> float:
    """The floor in ulps of the largest element: gradients of equal indices are added one after the other."""
    times = index.size / max(1, _extent(x)) if hasattr(index, "size") else 1.0
    return max(1.0, times**0.5 / 2)


known("__getitem__", traits={"scale_back": _repeated})
known(
    "embedding_bag embedding",
    family="embedding",
    input=integers(0, lambda weight: weight.shape[0]),
    updates=lambda max_norm=None: ("weight",) if max_norm else (),
    grad=lambda sparse=False: not sparse,
)
known(
    "tensor_split", indices=constant(2), sections=constant(2), indices_or_sections=constant(2),
    tensor_indices_or_sections=constant(2),
    on_cpu=("sections", "indices_or_sections", "tensor_indices_or_sections"),
)  # fmt: skip
known("to_sparse", grad=False)


def _sparse(name: str, parameters: str, sparse: str) -> None:
    known(
        f"torch.sparse.{name}",
        parameters=tuple(parameters.split()),
        layouts={sparse: "coo"},
        family="sparse",
        shown=lambda found, given: found.to_dense() if found.is_sparse else found,
    )


_sparse("mm", "sparse dense reduce", "sparse")
_sparse("addmm", "mat mat1 mat2 beta alpha", "mat1")
for _name in ("softmax", "log_softmax", "sum"):
    _sparse(_name, "input dim dtype", "input")
known("searchsorted", sorter=literal(lambda this: [place % this.shape[-1] for place in range(this.size)]))
known("bucketize", boundaries=increasing())

# -- classes --


def _classes(this: Any, x: Any) -> Any:
    """Classes along the second axis of the scores; a floating-point target has shares of classes."""
    if "float" in this.dtype:
        return uniform(0, 1)
    return integers(0, x.shape[1 if x.ndim > 1 else 0] if x.shape else 1)


_PRODUCTS = {"wide": "products of many elements overflow in between"}
known("index_reduce index_reduce_ scatter_reduce scatter_reduce_", undefined=_PRODUCTS)
known("nll_loss multi_margin_loss", family="classification", target=_classes)


def _two_classes(this: Any) -> Any:
    """Two classes of each row, and the -1 that ends them."""
    classes = this.shape[-1] if this.shape else 1
    row = [0, classes // 2, *[-1] * classes][:classes]
    return Literal(row * (this.size // max(classes, 1)))


known("multilabel_margin_loss", family="loss", target=_two_classes)
known("cross_entropy", target=_classes)
known("linear_cross_entropy", target=integers(0, lambda linear_weight: linear_weight.shape[0]))


def _labels(log_probs: Any, blank: int = 0) -> Any:
    """No blanks. That of a module, which a rule does not see, is the first class or the last one."""
    return integers(0, blank) if blank else integers(1, max(2, log_probs.shape[-1] - 1))


known(
    "ctc_loss",
    family="sequence_loss",
    targets=_labels,
    input_lengths=constant(lambda log_probs: log_probs.shape[0]),
    target_lengths=constant(lambda log_probs: log_probs.shape[0] // 2),
)
known("gaussian_nll_loss", family="loss", var=positive())


# -- matrices --


def _pivots(this: Any) -> Any:
    """No rows change places."""
    rows = this.shape[-1] if this.shape else 1
    return Literal([place % rows + 1 for place in range(this.size)])


known("torch.svd", family="decomposition", traits=SPECTRAL, grad=False)
TABLE["torch.svd"]["shown"] = lambda found, given: singular_parts(
    given["input"], (*found[:2], found[2].mH.resolve_conj())
)
known("lu_solve", LU=lopsided, LU_data=lopsided, pivots=_pivots, LU_pivots=_pivots)
known("lu_unpack", LU_pivots=_pivots)
known("ldl_solve", LD=lopsided, pivots=_pivots)
known("cov", aweights=positive(), fweights=integers(1, 4))
known("linalg_pinv pinv", rtol=constant(1e-3), atol=constant(1e-3))
known("lu torch.linalg.lu lu_factor lu_factor_ex", A=lopsided, args=lopsided, input=lopsided, self=lopsided)
for _name in (
    "native_batch_norm _native_batch_norm_legit native_layer_norm native_group_norm _batch_norm_with_update"
).split():
    # What they save for the backward differs by device.
    known(_name, shown=lambda found, given: found[0])
