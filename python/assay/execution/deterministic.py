"""The call with deterministic algorithms, where the framework has a switch for them."""

from assay.execution import Function, Plain, ability


class Way(Plain):
    """Turns the switch on, for the whole lane."""

    def wrap(self, function: Function, api: str) -> Function:
        ability(self.framework, "be_deterministic", "switch for deterministic algorithms")()
        return function
