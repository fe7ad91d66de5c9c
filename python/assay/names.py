"""What text from outside may reach: functions of tensors in a few namespaces, and nothing private."""

from assay.registry import DUNDERS
from assay.wire import refuse

# Where functions of tensors live, below the framework's root; see callable_name().
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


def public_name(api: str) -> str:
    """The name itself, if it names something public; private names are never looked up."""
    for part in api.split(".")[1:]:
        if part.startswith("_") and part not in DUNDERS:
            refuse(f"{api}: {part} is private to the framework")
    return api


def callable_name(api: str) -> str:
    """The name itself, if a case may call it although no table knows it.

    Frameworks also have public functions that run commands (paddle.utils, paddle.amp.core), load
    code (hub, utils.cpp_extension), or read and write files; text from outside reaches none of them.
    """
    namespace, _, function = api.partition(".")[2].rpartition(".")
    if namespace not in NAMESPACES:
        refuse(f"{api}: a case may call functions of tensors, and {namespace} is no namespace of those")
    if function in NO_FUNCTION_OF_TENSORS or function.startswith(CHANGES_THE_LANE):
        refuse(f"{api}: {function} is no function of tensors")
    return api
