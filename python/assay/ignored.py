"""Parameters that references do not read.

A reference that ignores an argument passes every implementation of that argument. So each parameter that a
reference does not read is in INERT, or in the `ignores` of its API (assay/apis/ignores.py), with a reason. In
the second case, any other value than the default makes a case unsupported. A test over all APIs demands this.
"""

import dis
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

# Parameters that change no value in any API, by reason.
_INERT_BY_REASON = {
    "it is a label": "name self",
    "it says where the result is stored": (
        "out inplace in_place device device_id place pin_memory blocking copy"
    ),
    "it concerns gradients of other tensors": "requires_grad stop_gradient",
    "the result has the same values": (
        "sparse is_sparse numeric_stable_mode niter assume_unique use_multi_tensor bitwise.is_arithmetic "
        "joining.num selection.sorted shape.output_size sorting.sorted"
    ),
    "the reference is always stable": "sorting.stable",
    "Paddle itself ignores it": "normalization.use_input_stats normalization.running_mean "
    "normalization.running_var normalization.momentum "
    "layers_weighted.momentum sparse_images.stride sparse_images.padding "
    "layers_weighted.do_model_average_for_mean_and_var",
    "it follows from the shapes, and has one correct value": (
        "fused.batch_size detection.x fused_attention.cum_offsets fused_attention.padding_offsets "
        "fused_attention.cu_seqlens_q fused_attention.cu_seqlens_k fused_attention.seq_lens_this_time "
        "fused_attention.seq_lens_encoder fused_attention.seq_lens fused_attention.max_seq_len "
        "fused_attention.max_enc_len_this_time fused_attention.max_seqlen_q fused_attention.max_seqlen_k "
        "fused_attention.varlen_padded moe.using_ue8m0_scale moe.expert_num_global_tensor "
        "fused_attention.max_dec_len_this_time fused_attention.seq_len "
        "graph.edge_weight methods.ps shape.target_shape"
    ),
    "rotation angles are 0": "fused_attention.rotary_tensor fused_attention.rope_emb "
    "fused_attention.rope_theta fused_attention.use_neox_style fused_attention.use_neox_rotary_style "
    "fused_attention.rotary_emb_dims",
    "the kernel sums in another order": "fused_attention.num_splits fused_attention.pack_gqa "
    "fused_attention.sm_margin moe.using_mix_precision",
    "all parameters of a layer are filled": "weight_attr init moving_mean_name moving_variance_name",
    "distributions do not depend on the seed": "seed generator fixed_seed_offset rng_name topp_seed",
    "buffers have no effect on values": (
        "perm_buffer flag_perm_buffer value_buffer index_buffer flag_buffer_hashtable correct total"
    ),
    "optimizers get one parameter": "parameters",
    "the loss has one rank": "ring_id",
    "a master copy of the parameter says so": "kernels.multi_precision",
    "the call overwrites it": "kernels.output",
    "gradients are dense": "kernels.lazy_mode kernels.min_row_size_to_use_multithread",
    "the axes that are given say so": "reduction.reduce_all",
}
# By parameter, or by FAMILY.PARAMETER.
INERT = {name: reason for reason, names in _INERT_BY_REASON.items() for name in names.split()}


def is_inert(entry: Any, name: str) -> bool:
    """Whether a parameter that the reference does not read changes no value."""
    return name in INERT or f"{entry.family}.{name}" in INERT


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _read(function: Any) -> set[str]:
    """The names that a function loads, also in functions inside."""
    found: set[str] = set()
    for code in _codes(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname.startswith("LOAD_"):
                found |= {step.argval} if isinstance(step.argval, str) else set()
    return found


def unread(entry: Any) -> set[str]:
    """The parameters that the reference of an API does not read."""
    function = entry.call
    reads = getattr(function, "reads", None)  # a wrapper names what it passes on
    if reads is None:
        own = inspect.signature(function, follow_wrapped=False).parameters
        written = function.__code__.co_varnames[: function.__code__.co_argcount]
        if not set(written) & set(own):  # it passes everything on
            return set()
        reads = _read(function)
    elif callable(reads):
        named = set(inspect.signature(reads).parameters)
        reads = named & _read(reads) if hasattr(reads, "__code__") else named
    return set(entry.parameters) - set(reads)


def ignored_by(entry: Any, named: Mapping[str, Any]) -> str:
    """Why the reference does not cover a call with these arguments; empty if it does."""
    if not entry.ignores:
        return ""
    known = inspect.signature(entry.call).parameters
    for name, reason in entry.ignores.items():
        default = known[name].default if name in known else None
        if name in named and named[name] is not None and named[name] != default:
            return f"the reference ignores {name}: {reason}"
    return ""
