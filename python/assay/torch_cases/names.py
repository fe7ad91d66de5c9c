"""Which names of PyTorch a case may use, and what their parameters are called.

A case may call what PyTorch itself lists as a function of tensors (torch.overrides), functions that create
tensors, modules, and registered operators. Nothing else can be reached, and no text is evaluated.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from assay import extensions
from assay.frameworks import look_up
from assay.wire import refuse

NAMESPACES = (
    "torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
    "torch.signal.windows", "torch.sparse",
)  # fmt: skip
MODULES = "torch.nn"
OPTIMIZERS = "torch.optim"
OPERATORS = "torch.ops"
CREATES = frozenset(
    "arange asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fftfreq full "
    "hamming_window hann_window kaiser_window linspace logspace normal ones rand rand_like randint "
    "randint_like randn randn_like randperm range rfftfreq scalar_tensor tril_indices triu_indices vander "
    "zeros as_strided hardsigmoid hardswish sigmoid tanh cond lstsq unflatten new_empty new_empty_strided "
    "new_full new_ones new_zeros fill upsample bartlett blackman cosine exponential gaussian "
    "general_cosine general_hamming hamming hann kaiser nuttall full_like multi_head_attention_forward to "
    "type item tolist result_type can_cast promote_types stride size as_tensor broadcast_shapes".split()
)
# Namespaces of PyTorch's own operators.
_OWN = frozenset(
    "aten prims prim quantized _quantized quantization quantized_decomposed mkldnn mkldnn_prepacked mkl "
    "onednn sparse inductor inductor_prims _inductor_test rngprims debugprims c10d _c10d_functional "
    "_c10d_functional_autograd symm_mem static_runtime _native _dtensor export higher_order profiler".split()
)
# Functions of sparse tensors: the layout of each parameter is in assay.torch_cases.tables.
SPARSE = frozenset(f"torch.sparse.{stem}" for stem in ("mm", "addmm", "softmax", "log_softmax", "sum"))
# Methods with tensors that change the lane, read or write files, share memory, or hand out raw memory.
_FORBIDDEN = frozenset(
    "register_hook register_post_accumulate_grad_hook backward share_memory_ set_ storage untyped_storage "
    "data_ptr numpy apply_ map_ map2_ module_load resize_ resize resize_as resize_as_ __dlpack__ "
    "__dlpack_device__ requires_grad_ retain_grad rename rename_ names refine_names align_to align_as "
    "is_shared is_pinned pin_memory __reduce_ex__ __setstate__ __deepcopy__ record_stream from_file "
    "sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ compile load_tensor".split()
)

_BINARY = re.compile(
    "__[ir]?(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__|__(eq|ne|lt|le|gt|ge)__"
)


def function_of(torch: Any, api: str) -> Callable[..., Any]:
    """The function, module class or operator that a case's name means. Raises Stop for a name that a case may
    not use, and AttributeError for one that the build lacks."""
    home, _, stem = api.rpartition(".")
    if api.startswith(OPERATORS + "."):
        return _operator(torch, api)
    if home in (MODULES, OPTIMIZERS):
        found = look_up(torch, api)
        base = torch.nn.Module if home == MODULES else torch.optim.Optimizer
        if not (inspect.isclass(found) and issubclass(found, base)):
            refuse(f"{api} is no module or optimizer")
        return found
    if home not in NAMESPACES:
        refuse(
            f"{api}: a case may call functions of {', '.join(NAMESPACES)}, {MODULES}, {OPTIMIZERS} "
            f"and {OPERATORS}"
        )
    found = look_up(torch, api)
    private = stem.startswith("_") and not stem.startswith("__")
    allowed = stem in CREATES or api in SPARSE or _takes_tensors(torch, found) or _is_replaced(found)
    if stem in _FORBIDDEN or private or not allowed:
        refuse(f"{api} is not a function of tensors")
    return found


def _operator(torch: Any, api: str) -> Callable[..., Any]:
    """A registered operator: torch.ops.NAMESPACE.OPERATOR or torch.ops.NAMESPACE.OPERATOR.OVERLOAD."""
    parts = api.split(".")[2:]
    if len(parts) not in (2, 3) or any(part.startswith("__") for part in parts):
        refuse(f"{api}: write torch.ops.NAMESPACE.OPERATOR or torch.ops.NAMESPACE.OPERATOR.OVERLOAD")
    found = torch.ops
    for part in parts:
        found = getattr(found, part)
    forbidden = not _FORBIDDEN.isdisjoint((parts[1], parts[1].lstrip("_")))
    if forbidden or not any(map(_has_tensors, schemas_of(found))):
        refuse(f"{api} is not a function of tensors")
    return found


def is_added(api: str) -> bool:
    """Whether the name is that of an operator that is not PyTorch's own."""
    return api.startswith(OPERATORS + ".") and api.split(".")[2] not in _OWN


def schemas_of(operator: Any) -> list[Any]:
    """The schemas of an operator's overloads, or of one overload; none for anything else."""
    overloads = getattr(operator, "overloads", None)
    each = [getattr(operator, name) for name in overloads()] if callable(overloads) else [operator]
    return [one._schema for one in each if hasattr(one, "_schema")]


def _has_tensors(schema: Any) -> bool:
    """Whether an operator takes or returns a tensor. Others change settings, print or write files."""
    return any("Tensor" in str(each.type) for each in (*schema.arguments, *schema.returns))


@cache
def _overridable(torch: Any) -> frozenset[int]:
    """The identities of the functions that PyTorch lists as functions of tensors."""
    return frozenset(map(id, torch.overrides.get_testing_overrides()))


def _is_replaced(function: Any) -> bool:
    """Whether a module of the lane has put this function in the place of PyTorch's."""
    home = getattr(function, "__globals__", {}).get("__name__", "").split(".")[0]
    return home in extensions.packages()


def _documented(torch: Any, api: str, function: Any) -> Any:
    """A function with the parameters of one that was replaced: PyTorch lists them for tests."""
    home, _, stem = api.rpartition(".")
    listed = torch.overrides.get_testing_overrides()
    alike = [each for each in listed if getattr(each, "__name__", "") == stem]  # torch.batch_norm, too
    nearest = min(alike, key=lambda each: getattr(each, "__module__", "") != home, default=None)
    found = function if function in listed else nearest
    return listed.get(found) if home == "torch.nn.functional" else None


def _takes_tensors(torch: Any, function: Any) -> bool:
    return id(function) in _overridable(torch)


def parameters_of(torch: Any, api: str, function: Any) -> tuple[str, ...]:
    """The names of the function's parameters by position; empty if nothing tells them."""
    if api.startswith(OPERATORS + "."):
        return tuple(argument.name for argument in schemas_of(function)[0].arguments)
    try:
        if _is_replaced(function):
            listed = _documented(torch, api, function)
            if listed is None or inspect.signature(listed).parameters:  # a module may list one without
                function = listed
        known = inspect.signature(function).parameters
        return tuple(name for name, each in known.items() if each.kind is not each.VAR_KEYWORD)
    except (TypeError, ValueError):  # a function of C
        return _of_schema(torch, api)


def _of_schema(torch: Any, api: str) -> tuple[str, ...]:
    """The parameters of the operator behind a function written in C: those of its longest overload."""
    home, _, stem = api.rpartition(".")
    prefix = {"torch.linalg": "linalg_", "torch.special": "special_", "torch.fft": "fft_"}.get(home, "")
    if stem.startswith(prefix):
        prefix = ""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{stem}")
    names: tuple[str, ...] = ()
    for schema in schemas:
        arguments = [each.name for each in schema.arguments if not each.kwarg_only]
        if any(str(each.type) == "Tensor" for each in schema.arguments) and len(arguments) > len(names):
            names = tuple(arguments)
    own = "self" if home == "torch.Tensor" else "input"
    if not names and _BINARY.fullmatch(stem):  # a slot of Python's
        return ("self", "other")
    named = (own if name == "self" else name for name in names)
    return tuple(sorted(named, key=lambda name: name != "self"))  # a method's own tensor is its first
