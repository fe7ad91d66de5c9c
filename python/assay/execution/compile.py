"""The call as a compiled graph: torch.compile, or to_static for Paddle.

`compile=BACKEND` chooses PyTorch's back end (inductor, aot_eager, cudagraphs …), `compile=dynamic` symbolic
shapes."""

from assay.execution import Function, Plain, ability
from assay.frameworks import Framework


class Way(Plain):
    """Compiles the function of each API."""

    takes_setting = True

    def __init__(self, framework: Framework, setting: str = "") -> None:
        super().__init__(framework, setting)
        if setting and hasattr(framework, "check_compiler"):
            framework.check_compiler(setting)
        self.in_place = False  # Paddle's graphs return the result of an in-place call
        self.functional = framework.name == "torch"  # Graphs.compiled

    def wrap(self, function: Function, api: str) -> Function:
        compiled = ability(self.framework, "compiled", "graph compiler")
        return compiled(function, api, self.setting) if self.setting else compiled(function, api)
