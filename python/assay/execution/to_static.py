"""The call as a graph that is compiled first; gradients go through that graph, too."""

from assay.execution import Function, Plain, ability


class Way(Plain):
    in_place = False  # a graph returns what it computes; its arguments stay as they are

    def wrap(self, function: Function, api: str) -> Function:
        return ability(self.framework, "compiled", "static graphs")(function, api)
