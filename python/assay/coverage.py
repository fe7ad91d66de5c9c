"""Which of Paddle's public tensor functions, layers and optimizers have a reference.

    python -m assay.coverage FILE    (in an environment with Paddle)

The command writes the coverage page; tests/lane/test_coverage.py compares the page with the installed Paddle.
Names that are not tensor functions, and names without a reference, are listed here with the reason.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from assay.known_deviation_page import write
from assay.operators import ROOT
from assay.registry import load_all

NAMESPACES = (
    "paddle", "paddle.Tensor", "paddle.nn.functional", "paddle.linalg", "paddle.fft", "paddle.signal",
    "paddle.sparse", "paddle.sparse.nn.functional", "paddle.geometric", "paddle.incubate",
    "paddle.incubate.nn.functional", "paddle.vision.ops", "paddle.audio.functional", "paddle.compat",
    "paddle.compat.nn.functional", "paddle.special", "paddle.text", "paddle.metric", "paddle.nn.quant",
)  # fmt: skip
CLASSES = ("paddle.nn", "paddle.optimizer")

# Public names that compute no tensor from tensors or numbers.
NO_FUNCTIONS = {
    "settings of the framework or the process": """
        paddle.get_default_dtype paddle.set_default_dtype paddle.in_dynamic_mode paddle.disable_static
        paddle.enable_static paddle.disable_signal_handler paddle.set_flags paddle.get_flags
        paddle.set_printoptions paddle.is_grad_enabled paddle.autocast paddle.is_autocast_enabled
        paddle.get_autocast_dtype paddle.get_autocast_cpu_dtype paddle.get_autocast_gpu_dtype
        paddle.enable_compat paddle.disable_compat paddle.check_shape""",
    "the state of random generators": """
        paddle.seed paddle.manual_seed paddle.compat.seed paddle.get_rng_state paddle.set_rng_state
        paddle.get_cuda_rng_state paddle.set_cuda_rng_state""",
    "returns an object that describes a dtype": "paddle.iinfo paddle.finfo",
    "reads or writes files, or describes a model": """
        paddle.save paddle.load paddle.summary paddle.flops paddle.vision.ops.read_file""",
    "makes a reader, a random parameter or a model": """
        paddle.batch paddle.create_parameter paddle.Tensor.create_parameter paddle.Tensor.create_tensor
        paddle.incubate.inference""",
    "shares memory with other libraries": "paddle.from_numpy paddle.from_dlpack paddle.to_dlpack",
    "takes a Python function as an argument": """
        paddle.Tensor.apply paddle.Tensor.apply_ paddle.Tensor.register_hook""",
    "differentiation itself, which every case exercises": """
        paddle.grad paddle.Tensor.backward paddle.Tensor.clear_grad paddle.Tensor.clear_gradient
        paddle.Tensor.gradient paddle.Tensor.retain_grads""",
    "returns an address or an internal handle": """
        paddle.Tensor.data_ptr paddle.Tensor.get_tensor paddle.Tensor.set_tensor
        paddle.Tensor.reconstruct_from_ paddle.Tensor.get_map_tensor paddle.Tensor.set_vocab
        paddle.Tensor.set_string_list paddle.Tensor.get_selected_rows paddle.Tensor.rows""",
    "a container or a base class of layers or parameters": """
        paddle.nn.Layer paddle.nn.LayerDict paddle.nn.LayerList paddle.nn.Module paddle.nn.ModuleDict
        paddle.nn.ModuleList paddle.nn.ParameterDict paddle.nn.ParameterList paddle.nn.Sequential
        paddle.nn.RNNCellBase paddle.optimizer.Optimizer""",
}

LEFT_OUT = {
    "a whole network, whose parts are tested": """
        paddle.incubate.nn.functional.fused_multi_transformer paddle.nn.Transformer""",
    "GPU-only kernel whose order of rows and padding are undocumented": """
        paddle.incubate.nn.functional.moe_gate_dispatch_partial_nosoftmaxtopk""",
    "the order of the weights depends on the device's kernels": """
        paddle.nn.quant.llm_int8_linear paddle.nn.quant.weight_dequantize""",
    "a random walk of several steps": "paddle.incubate.graph_khop_sampler",
    "its tail weights are random and are not parameters": """
        paddle.nn.AdaptiveLogSoftmaxWithLoss""",
    "its constructor takes layers, which the case language cannot write": """
        paddle.nn.RNN paddle.nn.BiRNN paddle.nn.TransformerEncoder paddle.nn.TransformerDecoder""",
    "takes a closure that computes the loss": "paddle.optimizer.LBFGS",
}


class Row(NamedTuple):
    """The public names of one namespace: all, with a reference, not a tensor function, left out."""

    namespace: str
    public: list[str]
    known: list[str]
    none: list[str]  # no functions of tensors
    missing: list[str]


def public_functions(paddle: Any, namespace: str) -> list[str]:
    """Full names of the public functions of a namespace, tensor methods included."""
    home = paddle
    for part in namespace.split(".")[1:]:
        home = getattr(home, part)
    names = getattr(home, "__all__", None)
    names = names if names and namespace != "paddle.Tensor" else [n for n in dir(home) if n[0] != "_"]
    found = [name for name in dict.fromkeys(names) if callable(getattr(home, name, None))]
    return [f"{namespace}.{name}" for name in found if not inspect.isclass(getattr(home, name))]


def public_classes(paddle: Any, namespace: str) -> list[str]:
    """Full names of the layers of paddle.nn or of the optimizers of paddle.optimizer."""
    home = getattr(paddle, namespace.split(".")[1])
    base = paddle.nn.Layer if namespace == "paddle.nn" else paddle.optimizer.Optimizer
    names = [name for name in dir(home) if inspect.isclass(getattr(home, name)) and name[0] != "_"]
    return [f"{namespace}.{name}" for name in names if issubclass(getattr(home, name), base)]


def listed(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason for each name, from a table of names for each reason."""
    return {name: reason for reason, names in reasons.items() for name in names.split()}


def rows(paddle: Any, known: Iterable[str]) -> list[Row]:
    """One row for each namespace; `known` holds the names that have a reference."""
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
    """The percentage of a namespace's tensor functions that have a reference."""
    wanted = len(row.public) - len(row.none)
    return f"{100 * len(row.known) / wanted:.1f}%" if wanted else "all"


def page(paddle: Any) -> str:
    """The text of the coverage page, in Markdown."""
    known = load_all()
    table = rows(paddle, known)
    functions = [row for row in table if row.namespace not in CLASSES]
    total = Row("all functions", *(sum((list(row[part]) for row in functions), []) for part in range(1, 5)))
    lines = [
        "# API coverage",
        "",
        f"`python -m assay.coverage` generates this page with Paddle {paddle.__version__}, and a test checks",
        "that it is current. The share counts the public tensor functions that have a reference.",
        "",
        "| namespace | public | not a tensor function | with a reference | left out | share |",
        "|---|---|---|---|---|---|",
    ]
    for row in [*table[: -len(CLASSES)], total, *table[-len(CLASSES) :]]:
        counts = " | ".join(str(len(part)) for part in (row.public, row.none, row.known, row.missing))
        lines.append(
            f"| `{row.namespace}` | {counts} | {share(row)} |".replace("`all functions`", "all functions")
        )
    for title, reasons, part in (
        ("Left out", LEFT_OUT, "missing"),
        ("Not a tensor function", NO_FUNCTIONS, "none"),
    ):
        lines += ["", f"## {title}", ""]
        shown = {name for row in table for name in getattr(row, part)}
        why = listed(reasons)
        for reason in dict.fromkeys([*reasons, "without a reason"]):
            names = sorted(name for name in shown if why.get(name, "without a reason") == reason)
            if names:
                lines.append(f"- {reason}: {', '.join(f'`{name}`' for name in names)}")
    return "\n".join([*lines, *operators(known)]) + "\n"


def operators(known: Iterable[str]) -> list[str]:
    """The lines about the operators of paddle._C_ops that have a reference."""
    names = sorted(name.removeprefix(ROOT) for name in known if name.startswith(ROOT))
    listed_names = ", ".join(f"`{name}`" for name in names)
    return ["", "## Operators", "", f"{len(names)} operators of `paddle._C_ops`: {listed_names}"]


if __name__ == "__main__":
    import paddle as installed

    write(page(installed))
