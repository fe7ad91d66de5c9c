"""The call as a program of torch.export, made for each case."""

from functools import partial

from assay.execution import Function, Plain, ability
from assay.registry import changes_input
from assay.wire import SKIPPED, Stop


class Way(Plain):
    """Exports each call and runs the program."""

    def wrap(self, function: Function, api: str) -> Function:
        exported = ability(self.framework, "exported", "export")
        if changes_input(api) or hasattr(function, "has_state"):
            raise Stop(SKIPPED, "a program gets copies of tensors, which the call would change")
        if isinstance(function, partial):  # a layer with its parameters, which are inputs of the program
            return partial(exported(function.func, api), *function.args)
        return exported(function, api)
