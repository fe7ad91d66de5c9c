"""Which names a case may use: functions of tensors in a few namespaces, and nothing private."""

import difflib

from assay.registry import DUNDERS
from assay.wire import refuse

# Namespaces with functions of tensors, below the framework's root.
NAMESPACES = frozenset(
    [
        "",
        *(
            "Tensor nn.functional nn.utils nn.quant linalg fft signal sparse sparse.nn.functional geometric "
            "vision.ops incubate incubate.nn.functional autograd audio.functional text metric strings special"
        ).split(),
    ]
)
NO_FUNCTION_OF_TENSORS = frozenset(
    "load save async_save clear_async_save_task_queue read_file from_dlpack to_dlpack batch summary flops "
    "new_init original_init apply register_hook seed manual_seed".split()
)
CHANGES_THE_LANE = ("set_", "enable_", "disable_", "monkey_patch_")


OPERATORS = "_C_ops"  # Paddle's module of operators; a case may call those that have a reference


def public_name(api: str, known: bool = False) -> str:
    """The name itself. Raises Stop if a part of it is private to the framework. `known` is whether the tables
    have the name."""
    parts = api.split(".")[1:]
    if parts[0] == OPERATORS:
        return api if known else refuse(f"{api}: assay's tables do not list this operator of {OPERATORS}")
    for part in parts:
        if part.startswith("_") and part not in DUNDERS:
            refuse(f"{api}: {part} is private to the framework")
    return api


def callable_name(api: str) -> str:
    """The name itself, if a case may call it without a reference. Raises Stop otherwise.

    Frameworks also have public functions that run commands (paddle.utils, paddle.amp.core), load code (hub,
    utils.cpp_extension), or read and write files. No case may reach them.
    """
    namespace, _, function = api.partition(".")[2].rpartition(".")
    if namespace not in NAMESPACES:
        near = difflib.get_close_matches(namespace, NAMESPACES, 1, 0.8)
        hint = f"; did you mean {near[0]}?" if near else ""
        refuse(f"{api}: a case may call functions of tensors, and {namespace} has none{hint}")
    if function in NO_FUNCTION_OF_TENSORS or function.startswith(CHANGES_THE_LANE):
        refuse(f"{api}: {function} is not a function of tensors")
    return api
