"""PyTorch's transformations of a call: torch.compile, torch.export and torch.vmap."""

import importlib
from collections.abc import Callable
from typing import Any

from assay.wire import SKIPPED, Stop, refuse

MOST_GRAPHS = 1 << 14  # of one API
DYNAMIC = "dynamic"
# Back ends of every build, which are known without the second that torch._dynamo's import takes.
BACKENDS = (DYNAMIC, "eager", "aot_eager", "inductor", "cudagraphs")


def _of_tensors(
    torch: Any, function: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """The call as a function of its tensors, and these."""
    pytree = importlib.import_module("torch.utils._pytree")
    leaves, form = pytree.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors: Any) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        own_args, own_kwargs = pytree.tree_unflatten(given, form)
        return function(*own_args, **own_kwargs)

    return call, [leaves[place] for place in places]


class Graphs:
    """What PyTorch's lane makes of a call."""

    torch: Any

    def check_compiler(self, setting: str) -> None:
        """Raises Stop if the build has no back end of this name."""
        if setting in BACKENDS:
            return
        known = {*BACKENDS, *importlib.import_module("torch._dynamo").list_backends()}
        if setting not in known:
            refuse(f"this build has no compiler called {setting}; there are: {', '.join(sorted(known))}")

    def compiled(
        self, function: Callable[..., Any], api: str, setting: str = "inductor"
    ) -> Callable[..., Any]:
        """The whole call as one graph by the back end `setting`; "dynamic" is Inductor with any shape. Raises
        Stop at a call that torch.compile does not capture."""
        dynamo = importlib.import_module("torch._dynamo")
        dynamo.reset()  # the graphs of the API before
        dynamo.config.recompile_limit = MOST_GRAPHS
        dynamo.config.accumulated_recompile_limit = MOST_GRAPHS
        dynamo.config.fail_on_recompile_limit_hit = True  # otherwise the call would run eagerly, unseen

        in_place = importlib.import_module("assay.registry").changes_input(api)  # needs the framework itself

        def call(*args: Any, **kwargs: Any) -> Any:
            if not in_place and not kwargs.get("inplace"):
                return function(*args, **kwargs)
            # A graph that overwrites its input has no gradient, so the copy is within the graph.
            first = args[0].clone()
            returned = function(first, *args[1:], **kwargs)
            return first if in_place else returned

        backend = "inductor" if setting == DYNAMIC else setting
        graph = self.torch.compile(call, fullgraph=True, dynamic=setting == DYNAMIC, backend=backend)

        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return graph(*args, **kwargs)
            except dynamo.exc.Unsupported as error:
                reason = str(error).strip().splitlines()[0]
                raise Stop(SKIPPED, f"torch.compile does not capture {api}: {reason}") from error

        return run

    def exported(self, function: Callable[..., Any], api: str) -> Callable[..., Any]:
        """The call as a program of torch.export. Raises Stop at a call that it does not capture."""

        def run(*args: Any, **kwargs: Any) -> Any:
            call, tensors = _of_tensors(self.torch, function, args, kwargs)

            class Whole(self.torch.nn.Module):  # type: ignore[misc]
                def forward(self, *tensors: Any) -> Any:
                    return call(*tensors)

            function(*args, **kwargs)  # an error of the call itself
            try:
                program = self.torch.export.export(Whole(), tuple(tensors), strict=False).module()
            except Exception as error:
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise Stop(SKIPPED, f"torch.export does not capture {api}: {reason}") from error
            return program(*tensors)

        return run

    def batched(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The first of two results of torch.vmap over two equal calls."""
        call, tensors = _of_tensors(self.torch, function, args, kwargs)
        if not tensors:
            raise Stop(SKIPPED, "vmap needs a tensor")
        stacked = [self.torch.stack([tensor] * 2) for tensor in tensors]
        try:
            both = self.torch.vmap(call, randomness="same")(*stacked)
        except RuntimeError as error:
            if not str(error).startswith("vmap: "):
                raise
            raise Stop(SKIPPED, str(error).partition("\n")[0]) from error
        return importlib.import_module("torch.utils._pytree").tree_map(lambda leaf: leaf[0], both)
