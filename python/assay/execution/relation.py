"""The call in another way that should give the same result: relation=rows and others (assay.relations)."""

from functools import partial
from typing import Any

from assay import relations
from assay.execution import Function, Plain
from assay.registry import changes_input
from assay.rules import ask
from assay.torch_cases.entries import entry_of
from assay.wire import SKIPPED, Stop, refuse


class Way(Plain):
    """Computes each call by the relation."""

    takes_setting = True

    def wrap(self, function: Function, api: str) -> Function:
        make = relations.RELATIONS.get(self.setting)
        if make is None:
            refuse(f"unknown relation {self.setting}; known are {', '.join(relations.RELATIONS)}")
        if self.framework.name not in ("torch", "paddle"):
            raise Stop(SKIPPED, f"relations are written for torch and paddle, not {self.framework.name}")
        if changes_input(api) or hasattr(function, "has_state"):
            raise Stop(SKIPPED, "the call changes its arguments or its state")
        bound: tuple[Any, ...] = ()
        if self.setting in relations.DIFFERENTIATES and isinstance(function, partial):
            function, bound = function.func, function.args
        operations = relations.Operations(self.framework)
        related = make(operations, function, api)
        entry = entry_of(api)

        def run(*args: Any, **kwargs: Any) -> Any:
            updates: Any = ()
            if entry is not None and entry.updates:
                named = dict(zip(entry.parameters, args, strict=False)) | kwargs
                updates = ask(entry.updates, named, None) if callable(entry.updates) else entry.updates
            if kwargs.get("inplace") or any(named.get(each) is not None for each in updates):
                raise Stop(SKIPPED, "the call changes its arguments")
            if any(self.framework.sparse_parts(each) for each in operations.tensors((args, kwargs))):
                raise Stop(SKIPPED, "relations are of dense tensors")
            return related(*args, **kwargs)

        return partial(run, *bound) if bound else run
