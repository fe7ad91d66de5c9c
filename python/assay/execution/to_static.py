"""The call as a compiled graph. Gradients run through the graph too."""

from assay.execution import Function, Plain, ability


class Way(Plain):
    """Compiles the function of each API."""

    in_place = False  # the graph returns the result; whether it also changes the argument is compared

    def wrap(self, function: Function, api: str) -> Function:
        return ability(self.framework, "compiled", "static graphs")(function, api)
