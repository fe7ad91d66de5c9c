"""docs/coverage.md: which of Paddle's public functions of tensors, layers and optimizers the tables know.

    python -m assay.coverage docs/coverage.md    (in an environment with Paddle)

The page is generated; tests/lane/test_coverage.py wants it to be what this gives for the installed Paddle.
What is no function of tensors, and what is left out, stands here with its reason.
"""

import inspect
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from assay.registry import load_all

NAMESPACES = (
    "paddle", "paddle.Tensor", "paddle.nn.functional", "paddle.linalg", "paddle.fft", "paddle.signal",
    "paddle.sparse", "paddle.sparse.nn.functional", "paddle.geometric", "paddle.incubate",
    "paddle.incubate.nn.functional", "paddle.vision.ops", "paddle.audio.functional", "paddle.compat",
    "paddle.compat.nn.functional", "paddle.special", "paddle.text", "paddle.metric", "paddle.nn.quant",
)  # fmt: skip
CLASSES = ("paddle.nn", "paddle.optimizer")

# Public, and none of what assay tests: nothing with a tensor for its result comes of a tensor or of numbers.
NO_FUNCTIONS = {
    "settings of the framework or of the process": """
        paddle.get_default_dtype paddle.set_default_dtype paddle.in_dynamic_mode paddle.disable_static
        paddle.enable_static paddle.disable_signal_handler paddle.set_flags paddle.get_flags
        paddle.set_printoptions paddle.is_grad_enabled paddle.autocast paddle.is_autocast_enabled
        paddle.get_autocast_dtype paddle.get_autocast_cpu_dtype paddle.get_autocast_gpu_dtype
        paddle.enable_compat paddle.disable_compat paddle.check_shape""",
    "the state of random generators": """
        paddle.seed paddle.manual_seed paddle.compat.seed paddle.get_rng_state paddle.set_rng_state
        paddle.get_cuda_rng_state paddle.set_cuda_rng_state""",
    "facts about a dtype, in an object of their own": "paddle.iinfo paddle.finfo",
    "reads or writes files, or describes a model": """
        paddle.save paddle.load paddle.summary paddle.flops paddle.vision.ops.read_file""",
    "makes a reader of batches, a parameter or a model, at random": """
        paddle.batch paddle.create_parameter paddle.Tensor.create_parameter paddle.Tensor.create_tensor
        paddle.incubate.inference""",
    "memory of other libraries": "paddle.from_numpy paddle.from_dlpack paddle.to_dlpack",
    "takes a function of Python": "paddle.Tensor.apply paddle.Tensor.apply_ paddle.Tensor.register_hook",
    "differentiation itself, which every case does": """
        paddle.grad paddle.Tensor.backward paddle.Tensor.clear_grad paddle.Tensor.clear_gradient
        paddle.Tensor.gradient paddle.Tensor.retain_grads""",
    "an address, or a handle to the tensor's inside": """
        paddle.Tensor.data_ptr paddle.Tensor.get_tensor paddle.Tensor.set_tensor
        paddle.Tensor.reconstruct_from_ paddle.Tensor.get_map_tensor paddle.Tensor.set_vocab
        paddle.Tensor.set_string_list paddle.Tensor.get_selected_rows paddle.Tensor.rows""",
    "holds other layers or parameters, or is their base": """
        paddle.nn.Layer paddle.nn.LayerDict paddle.nn.LayerList paddle.nn.Module paddle.nn.ModuleDict
        paddle.nn.ModuleList paddle.nn.ParameterDict paddle.nn.ParameterList paddle.nn.Sequential
        paddle.nn.RNNCellBase paddle.optimizer.Optimizer""",
}

LEFT_OUT = {
    "memory of another device": "paddle.Tensor.cuda paddle.Tensor.pin_memory",
    "a kernel of GPUs alone, and no documentation of what it computes": """
        paddle.incubate.nn.functional.cal_aux_loss
        paddle.incubate.nn.functional.build_src_rank_and_local_expert_id
        paddle.incubate.nn.functional.expand_modality_expert_id
        paddle.incubate.nn.functional.moe_gate_dispatch
        paddle.incubate.nn.functional.moe_gate_dispatch_permute
        paddle.incubate.nn.functional.moe_gate_dispatch_partial_nosoftmaxtopk
        paddle.incubate.nn.functional.moe_gate_dispatch_and_quant
        paddle.incubate.nn.functional.cross_entropy_with_softmax_bwd_w_downcast
        paddle.incubate.nn.functional.embedding_grad_add_to_""",
    "a kernel of GPUs alone, of float8 with scales: no CPU could check the reference": """
        paddle.linalg.fp8_fp8_half_gemm_fused paddle.incubate.nn.functional.fp8_gemm_blockwise
        paddle.incubate.nn.functional.fp8_quant_blockwise paddle.incubate.nn.functional.fused_act_dequant
        paddle.incubate.nn.functional.fused_stack_transpose_quant
        paddle.incubate.nn.functional.fused_transpose_split_quant
        paddle.incubate.nn.functional.fused_transpose_wlch_split_quant
        paddle.incubate.nn.functional.fused_weighted_swiglu_act_quant
        paddle.nn.functional.moe_permute paddle.nn.functional.moe_unpermute""",
    "whole networks, of parts that are tested by themselves": """
        paddle.incubate.nn.functional.fused_multi_transformer paddle.nn.Transformer""",
    "a kernel of GPUs alone, of half precision: no CPU could check the reference": """
        paddle.nn.functional.flash_attention_v3_varlen paddle.nn.functional.flash_attn_qkvpacked
        paddle.nn.functional.flash_attn_varlen_qkvpacked
        paddle.incubate.nn.functional.fused_swiglu_weighted_bwd""",
    "weights in an order that only the device's kernels know": """
        paddle.nn.quant.llm_int8_linear paddle.nn.quant.weight_dequantize""",
    "a walk of several random steps": "paddle.incubate.graph_khop_sampler",
    "its tail weights are drawn at random and are no parameters of it": """
        paddle.nn.AdaptiveLogSoftmaxWithLoss""",
    "is made with other layers, which a case cannot say": """
        paddle.nn.RNN paddle.nn.BiRNN paddle.nn.TransformerEncoder paddle.nn.TransformerDecoder""",
    "takes a function that says how large the loss is at a point": "paddle.optimizer.LBFGS",
}


class Row(NamedTuple):
    """What is known of a namespace."""

    namespace: str
    public: list[str]
    known: list[str]
    none: list[str]  # no functions of tensors
    missing: list[str]


def public_functions(paddle: Any, namespace: str) -> list[str]:
    """Full names of the public functions there, methods of tensors included."""
    home = paddle
    for part in namespace.split(".")[1:]:
        home = getattr(home, part)
    names = getattr(home, "__all__", None)
    names = names if names and namespace != "paddle.Tensor" else [n for n in dir(home) if n[0] != "_"]
    found = [name for name in dict.fromkeys(names) if callable(getattr(home, name, None))]
    return [f"{namespace}.{name}" for name in found if not inspect.isclass(getattr(home, name))]


def public_classes(paddle: Any, namespace: str) -> list[str]:
    """Full names of the layers or optimizers there."""
    home = getattr(paddle, namespace.split(".")[1])
    base = paddle.nn.Layer if namespace == "paddle.nn" else paddle.optimizer.Optimizer
    names = [name for name in dir(home) if inspect.isclass(getattr(home, name)) and name[0] != "_"]
    return [f"{namespace}.{name}" for name in names if issubclass(getattr(home, name), base)]


def listed(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason for each name."""
    return {name: reason for reason, names in reasons.items() for name in names.split()}


def rows(paddle: Any, known: Iterable[str]) -> list[Row]:
    known, none = set(known), listed(NO_FUNCTIONS)
    found = [(namespace, public_functions(paddle, namespace)) for namespace in NAMESPACES]
    found += [(namespace, public_classes(paddle, namespace)) for namespace in CLASSES]
    return [
        Row(
            namespace,
            public,
            [name for name in public if name in known],
            [name for name in public if name in none and name not in known],
            [name for name in public if name not in none and name not in known],
        )
        for namespace, public in found
    ]


def share(row: Row) -> str:
    wanted = len(row.public) - len(row.none)
    return f"{100 * len(row.known) / wanted:.1f}%" if wanted else "all"


def page(paddle: Any) -> str:
    """The text of docs/coverage.md."""
    table = rows(paddle, load_all())
    functions = [row for row in table if row.namespace not in CLASSES]
    total = Row("all functions", *(sum((list(row[part]) for row in functions), []) for part in range(1, 5)))
    lines = [
        "# What the tables know of Paddle",
        "",
        f"Generated by `python -m assay.coverage docs/coverage.md` with Paddle {paddle.__version__}; a test",
        "wants this page to be current. Public names of each namespace; the share is of those that are",
        "functions of tensors.",
        "",
        "| namespace | public | no function of tensors | with a reference | left out | share |",
        "|---|---|---|---|---|---|",
    ]
    for row in [*table[: -len(CLASSES)], total, *table[-len(CLASSES) :]]:
        counts = " | ".join(str(len(part)) for part in (row.public, row.none, row.known, row.missing))
        lines.append(
            f"| `{row.namespace}` | {counts} | {share(row)} |".replace("`all functions`", "together")
        )
    for title, reasons, part in (
        ("Left out", LEFT_OUT, "missing"),
        ("No function of tensors", NO_FUNCTIONS, "none"),
    ):
        lines += ["", f"## {title}", ""]
        shown = {name for row in table for name in getattr(row, part)}
        why = listed(reasons)
        for reason in dict.fromkeys([*reasons, "without a reason"]):
            names = sorted(name for name in shown if why.get(name, "without a reason") == reason)
            if names:
                lines.append(f"- {reason}: {', '.join(f'`{name}`' for name in names)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import paddle as installed

    text = page(installed)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    else:
        print(text, end="")
