"""PyTorch's operators as traces name them: `torch.ops.aten.add_.Tensor`.

An operator's schema says which arguments it changes. What else is known of it comes from the public function
of the same meaning: `aten._softmax` has the value rules and traits of `torch.softmax`, and an operator of a
backward pass the family of its forward pass, with the error bars of its gradients. The rules below are those
of arguments that only operators have.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from assay import draw_distribution
from assay.apis.decomposition import singular_parts
from assay.reference import torch
from assay.regimes import HALF, OTHERS, TRAITS
from assay.rules import Literal, constant, integers, positive
from assay.shared import MOST_ELEMENTS
from assay.torch_cases.names import OPERATORS
from assay.torch_cases.tables import TABLE, known

_ATEN = f"{OPERATORS}.aten."
_PREFIXES = ("_", "foreach_", "native_", "special_", "linalg_", "fft_", "cudnn_", "adaptive_")
_LAYOUTS = ("forward", "with_indices", "legit", "no_training", "data")  # ends of names that mean the same
CHOSEN = "only PyTorch itself calls the operator, in the layouts that it chooses; a case may state strides"
BELOW = "an operator below autograd: a trace has its backward pass as a call of its own"


def is_operator(api: str) -> bool:
    """Whether the name is that of a registered operator."""
    return api.startswith(OPERATORS + ".")


def stem_of(api: str) -> str:
    """The last part of a function's name. Of an operator the name without its overload."""
    return api.split(".")[3] if is_operator(api) else api.rpartition(".")[2]


def is_low_level(api: str) -> bool:
    """Whether the name is that of an overload of PyTorch's own operators, as the dispatcher calls it."""
    return api.startswith(_ATEN) and api.count(".") == 4


def is_internal(api: str) -> bool:
    """Whether only PyTorch itself calls the operator, in memory layouts that it chooses."""
    return is_low_level(api) and (stem_of(api).startswith("_") or is_backward(api))


def is_backward(api: str) -> bool:
    """Whether the name is that of an operator of a backward pass."""
    return is_operator(api) and "_backward" in stem_of(api)


def names_of(api: str) -> Iterator[str]:
    """Names of functions that may have the operator's meaning, the nearest first."""
    stem = stem_of(api).partition("_backward")[0]
    seen = set()
    while True:
        yield from (f"torch.{stem}", f"torch.{stem.rstrip('_')}")
        seen.add(stem)
        shorter = next((stem.removeprefix(each) for each in _PREFIXES if stem.startswith(each)), stem)
        for end in _LAYOUTS:
            shorter = shorter.removesuffix(f"_{end}")
        if shorter in seen:
            shorter = shorter.removesuffix("2d").removesuffix("3d")  # nll_loss2d
        if shorter in seen:
            return
        stem = shorter


def known_of(api: str) -> dict[str, Any]:
    """The options of TABLE for an operator: its own, those of the method or function of its name, whose
    distribution has the same arguments, and beside them those of a similar name."""
    stem = stem_of(api)
    exact = (api, f"{_ATEN}{stem}", f"torch.Tensor.{stem}", f"torch.{stem}", stem)
    own = next((TABLE[name] for name in exact if name in TABLE), {})
    similar = (TABLE.get(name.removeprefix("torch."), {}) for name in names_of(api))
    like = next((found for found in similar if found and "call" not in found), {})
    if "call" in own or like is own:
        return own
    others = {"shown", "parameters", "regimes", *["skip"] * is_backward(api)}  # backward passes draw nothing
    kept = {key: each for key, each in like.items() if key not in others}
    return {**kept, **own, "rules": {**kept.get("rules", {}), **own.get("rules", {})}}


def written_of(function: Any) -> list[str]:
    """The arguments that an operator changes, by its schema: `Tensor(a!) self`."""
    overloads = getattr(function, "overloads", None)
    one = getattr(function, overloads()[0]) if callable(overloads) else function
    return [each.name for each in one._schema.arguments if each.alias_info and each.alias_info.is_write]


def backward_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an operator of a backward pass, from those of the forward pass. Its results are the
    gradients that the forward pass's options describe."""
    traits = TRAITS.get(options.get("family", ""), OTHERS)._replace(**options.get("traits", {}))
    theirs = {"scale": traits.scale_back, "terms": traits.terms_back, "chained": not traits.moves}
    theirs |= {} if traits.near_one_back is None else {"near_one": traits.near_one_back}
    reason = "gradients are judged under usual values"
    return {
        **{key: options[key] for key in ("family", "rules", "aliases") if key in options},
        "traits": {**options.get("traits", {}), **theirs},
        "undefined": dict.fromkeys(("wide", "nan", "infinity", "bulk", "exact", "constant"), reason),
    }


# -- value rules of arguments that only operators have --


def _place_in(indices: Any, this: Any) -> int:
    """The position of a tensor in a list of tensors and None."""
    return next(
        (place for place, each in enumerate(indices) if each is not None and each.index == this.index), 0
    )


def _of_axis(this: Any, x: Any, indices: Any) -> Any:
    """Indices of the axis at their position in the list; masks need no rule."""
    return integers(0, max(1, x.shape[_place_in(indices, this)])) if this.dtype != "bool" else None


def _apart_in_axis(this: Any, x: Any, indices: Any, accumulate: bool = False) -> Any:
    """The same, none of them equal if that is possible: which of two writes to one place wins is not
    promised."""
    rule = _of_axis(this, x, indices)
    extent = x.shape[_place_in(indices, this)]
    if rule is None or accumulate or not 1 < this.size <= min(extent, MOST_ELEMENTS):
        return rule
    return Literal([extent - 1 - place for place in range(this.size)])


def _steps(terms: float, x: Any) -> float:
    """The floor in ulps of the largest element: half precision adds up in memory, one after the other."""
    return max(1.0, terms**0.5 / 4) if x.dtype in HALF else 1.0


def _window(this: Any, x: Any, stride: Any = (), kernel_size: Any = (), padding: Any = (0,)) -> Any:
    """The index of an element of each window in its plane: its first one."""
    plane = x.shape[-len(kernel_size) :] if kernel_size else x.shape[-2:]
    steps = [*(stride or kernel_size)] * (len(plane) if len(stride or kernel_size) == 1 else 1)
    if this.size > MOST_ELEMENTS or len(steps) != len(plane):
        return integers(0, prod(plane))
    rows = [0]
    for axis, extent in enumerate(this.shape[-len(plane) :]):
        rows = [
            row * plane[axis] + min(place * steps[axis], plane[axis] - 1)
            for row in rows
            for place in range(extent)
        ]
    return Literal(rows * (this.size // max(1, len(rows))))


def _first_bag(this: Any, offsets: Any = None, grad: Any = None) -> Any:
    """The bag of each index, for offsets that cut the indices into bags of equal length."""
    bags = grad.shape[0] if offsets is None else offsets.size
    return Literal([place * bags // max(1, this.size) for place in range(this.size)])


_SHARE = positive(0.5, 1.5)
# By the name of a parameter, whatever the operator: divisors, counts of steps, flags.
BY_PARAMETER: dict[str, Any] = {
    **dict.fromkeys(
        "save_invstd save_var invstd rstd running_var exp_avg_sqs max_exp_avg_sqs state_sums".split(), _SHARE
    ),
    "total_weight": constant(lambda target: max(1, target.size)),
    "state_steps": integers(1, 5),
    "grad_scale": constant(2.0),
    "found_inf": constant(0.0),
}
known("torch.ops.aten.embedding", indices=integers(0, lambda weight: max(1, weight.shape[0])))
known(
    "embedding_dense_backward",
    indices=integers(0, lambda num_weights: max(1, num_weights)),
    traits={"scale_back": lambda x, indices, num_weights: _steps(indices.size / max(1, num_weights), x)},
)
known("convolution_backward", traits={"scale_back": lambda x: _steps(x.shape[0], x)})
_OF_ROWS = integers(0, lambda weight: max(1, weight.shape[0]))
for _name in ("_embedding_bag", "_embedding_bag_forward_only", "_embedding_bag_per_sample_weights_backward"):
    known(_name, family="embedding", indices=_OF_ROWS, offsets=TABLE["embedding_bag"]["rules"]["offsets"])
    known(_name, offset2bag=_first_bag, aliases={"input": "indices"})
known(
    "_embedding_bag_backward _embedding_bag_dense_backward",
    indices=integers(0, lambda num_weights: max(1, num_weights)),
    offset2bag=_first_bag,
)
known("value_selecting_reduction_backward", indices=integers(0, lambda sizes, dim: sizes[dim]))


def _descending(this: Any, input: Any, batch_first: bool) -> Any:
    """The lengths of a batch of sequences, the longest first."""
    return Literal([max(1, input.shape[int(batch_first)] - place) for place in range(this.size)])


known("_pack_padded_sequence", lengths=_descending)
known("_embedding_bag _embedding_bag_forward_only", shown=lambda found, given: found[0])
known("torch.ops.aten.index", family="gather_scatter", indices=_of_axis)
known(
    "index_put index_put_ _index_put_impl_ _unsafe_index_put",
    family="gather_scatter",
    indices=_apart_in_axis,
    traits={
        "scale": lambda x, values, accumulate=False: _steps(
            values.size / max(1, x.size) if accumulate else 1, x
        )
    },
)
known(
    " ".join(f"max_pool{rank}d_with_indices_backward" for rank in (2, 3)), family="pooling", indices=_window
)


def _in_plane(this: Any, x: Any) -> Any:
    """Indices into the last axes: as many as a batch of channels leaves."""
    return integers(0, prod(x.shape[-(max(3, x.ndim) - 2) :]))


def _unpooled(this: Any, output_size: Any) -> Any:
    """Distinct indices into each plane of the result."""
    count, plane = max(1, prod(this.shape[-len(output_size) :])), prod(output_size)
    return Literal([place % count * (plane // count) for place in range(this.size)])


def _segments(this: Any, data: Any) -> Any:
    """Lengths of segments of an axis, as equal as possible."""
    parts, extent = max(1, this.shape[-1]), data.shape[this.ndim - 1]
    return Literal([extent // parts + (place % parts < extent % parts) for place in range(this.size)])


for _rank in (2, 3):
    _pools = f"adaptive_max_pool{_rank}d_backward fractional_max_pool{_rank}d_backward"
    known(_pools, family="pooling", indices=_in_plane)
    known(f"torch.ops.aten.max_unpool{_rank}d", family="pooling", indices=_unpooled, grad=False)
known("multilabel_margin_loss_backward", is_target=integers(0, 2))
known("_linalg_check_errors", skip="it returns nothing")
known("segment_reduce _segment_reduce_backward", lengths=_segments)
known("_ctc_loss", shown=lambda found, given: found[0])
known("_linalg_svd", shown=lambda found, given: singular_parts(given["A"], found))
known("rrelu_with_noise rrelu_with_noise_ rrelu_with_noise_functional", skip=TABLE["rrelu"]["skip"])
known(
    "_sparse_coo_tensor_with_dims_and_tensors",
    family="sparse",
    indices=integers(0, lambda size: max(1, min(size))),
    shown=lambda found, given: {"indices": found._indices(), "values": found._values()},
)


@known("native_dropout", family="dropout", grad=False)
def _native_dropout(input, p, train=None):
    """The result, and which elements it keeps."""
    if train is False or p == 0:
        return [input, torch.ones_like(input, dtype=torch.bool)]
    mask = draw_distribution.bernoulli_draw(1 - p, input.shape, torch.bool)
    return [draw_distribution.kept(input / (1 - p) if p < 1 else input * 0, 1 - p), mask]
