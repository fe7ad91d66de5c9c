"""PyTorch's modules and optimizers as cases: constructed first, then called (assay.layers).

    torch.nn.LayerNorm(8)(Tensor([2, 8], "float32"))
    torch.optim.SGD(0.1)(Tensor([8], "float32"), Tensor([8], "float32"))

The module itself says which parameters it has. Both lanes call it with the case's own parameters
(torch.func.functional_call); the reference does so in float64.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from assay.layers import LAYER, OPTIMIZER, STEPS, Made
from assay.registry import REGISTRY, Api
from assay.rules import AnyRule, integers, positive
from assay.torch_cases.names import OPTIMIZERS
from assay.torch_cases.oracle import Drawn, Oracle
from assay.torch_cases.tables import TABLE
from assay.wire import UNSUPPORTED, Stop

_LAZY = "a lazy module has parameters only after its first call"
_SKIPPED = {
    "LBFGS": "its step needs a closure", "SparseAdam": "it takes sparse gradients only",
}  # fmt: skip
_PADS = "Circular Constant Reflection Replication Zero"
_FUNCTIONS = {
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "Softmax2d": "softmax",
    **{f"{mode}Pad{axes}d": "pad" for mode in _PADS.split() for axes in (1, 2, 3)},
}  # fmt: skip
# Functions of the same meaning whose results are drawn.
_DRAWN = {
    "Dropout": "dropout", "Dropout1d": "dropout1d", "Dropout2d": "dropout2d", "Dropout3d": "dropout3d",
    "AlphaDropout": "alpha_dropout", "FeatureAlphaDropout": "feature_alpha_dropout",
}  # fmt: skip
_RULES: dict[str, dict[str, AnyRule]] = {
    "Embedding": {"input": integers(0, lambda num_embeddings: num_embeddings)},
    "EmbeddingBag": {"input": integers(0, lambda num_embeddings: num_embeddings)},
    "LinearCrossEntropyLoss": {"target": integers(0, lambda num_classes: num_classes)},
}


def is_made(api: str) -> bool:
    """Whether the name is that of a class: a module or an optimizer."""
    return api.rpartition(".")[0] in ("torch.nn", OPTIMIZERS)


def entry_of(torch: Any, api: str, found: Any, known: Callable[[str], Api | None]) -> Api:
    """The entry of a module or an optimizer. `known` gives the entry of a function."""
    home, _, stem = api.rpartition(".")
    parameters = names_of(found)
    if home == OPTIMIZERS:
        return Api(
            api, _Steps(torch, found), parameters[1:], kind=OPTIMIZER, inputs=("parameter", "gradient"),
            own=True, family="optimizers", grad=False, skip=_SKIPPED.get(stem, ""),
        )  # fmt: skip
    inputs = names_of(found.forward)
    like = _like(torch, stem, known)
    rules: dict[str, AnyRule] = {}
    aliases: dict[str, str] = {}
    if like is not None:
        theirs = dict(zip(like.inputs, inputs, strict=False)) | {name: name for name in inputs}
        rules = {theirs[name]: rule for name, rule in like.rules.items() if name in theirs}
        aliases = {**like.aliases} | {name: own for name, own in theirs.items() if name != own}
    grad = like.grad if like is not None and not callable(like.grad) else True
    return Api(
        api, _Module(torch, found, stem, inputs), parameters, kind=LAYER, inputs=inputs, own=True,
        rules=rules | _RULES.get(stem, {}), aliases=aliases, family=like.family if like else "",
        traits=_traits(like, stem, parameters), grad=grad, skip=_LAZY if stem.startswith("Lazy") else "",
    )  # fmt: skip


def _traits(like: Api | None, stem: str, parameters: tuple[str, ...]) -> Mapping[str, Any]:
    """Those of the function. The inputs' shapes do not show sums over a module's own parameters; the
    constructor of a module that has some takes their dtype."""
    if stem in ("RNN", "GRU", "LSTM"):  # cuDNN's tanh has an error of 3e-6
        return {"chained": True, "scale_back": 8.0}
    return {"chained": True} if like is None or "dtype" in parameters else like.traits


def module_of(torch: Any, make: Any, inputs: tuple[str, ...]) -> Callable[..., Made]:
    """The entry's call for a class of modules."""
    return _Module(torch, make, make.__name__, inputs)


def names_of(function: Any) -> tuple[str, ...]:
    """The parameters by position, without `self`."""
    known = inspect.signature(function).parameters
    found = [name for name, each in known.items() if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    return tuple(name for name in found if name != "self")


def _like(torch: Any, stem: str, known: Callable[[str], Api | None]) -> Api | None:
    """The entry whose value rules hold for the module's inputs: that of the function of the same name, or of
    Paddle's layer."""
    name = stem.lower()
    functions = _functions(torch)
    function = functions.get(name) or functions.get(name.removesuffix("loss")) or _FUNCTIONS.get(stem)
    return known(f"torch.nn.functional.{function}") if function else _by_name().get(name)


@cache
def _functions(torch: Any) -> Mapping[str, str]:
    """The functions of torch.nn.functional by their name without underscores, except those in place."""
    names = dir(torch.nn.functional)
    return {name.replace("_", ""): name for name in names if name[0].islower() and name[-1] != "_"}


@cache
def _by_name() -> Mapping[str, Api]:
    """Paddle's layers by their last name in lower case."""
    return {name.rpartition(".")[2].lower(): each for name, each in REGISTRY.items() if each.kind == LAYER}


class _Module:
    """Makes a module's parameters and its two forms: as it is, and as the reference."""

    def __init__(self, torch: Any, make: Any, stem: str, inputs: tuple[str, ...]) -> None:
        self.torch = torch
        self.make = make
        self.stem = stem
        self.inputs = inputs

    def __call__(self, *args: Any, **kwargs: Any) -> Made:
        module = self.make(*args, **kwargs)
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        state = [name for name, each in buffers.items() if each.is_floating_point()]
        floating = parameters | {name: buffers[name] for name in state}
        dtypes = {str(each.dtype).removeprefix("torch.") for each in floating.values()}
        if len(dtypes) > 1:
            raise Stop(UNSUPPORTED, "assay makes the parameters of a module in one dtype")
        own = self._own(module)
        return Made(
            self._reference(module, own),
            {name: tuple(each.shape) for name, each in floating.items()},
            {name: positive() for name in state if name.endswith("var")},
            state=tuple(state),
            dtype=next(iter(dtypes), "float32"),
            own=own,
        )

    def _own(self, module: Any) -> Callable[..., Any]:
        """The module as a function of its parameters and inputs. With state it returns the state, too."""
        call = self.torch.func.functional_call
        whole = {name: each for name, each in module.named_buffers() if not each.is_floating_point()}
        state = [name for name, each in module.named_buffers() if each.is_floating_point()]

        def run(parameters: dict[str, Any], *inputs: Any, **named: Any) -> Any:
            counted = {name: each.clone() for name, each in whole.items()}  # a call counts batches
            result = call(module, parameters | counted, inputs, named)
            return (result, {name: parameters[name] for name in state}) if state else result

        return run

    def _reference(self, module: Any, own: Callable[..., Any]) -> Callable[..., Any]:
        torch = self.torch
        if self.stem in _DRAWN:
            function = getattr(torch.nn.functional, _DRAWN[self.stem])
            distribution = TABLE[f"torch.nn.functional.{_DRAWN[self.stem]}"]["call"]
            drawn = Drawn(torch, function, distribution)
            return lambda _, x: drawn(x, module.p, True)
        if any(_drops(each) for each in module.modules()):
            return _unsupported("assay has no distribution for results after dropout")
        return Oracle(torch, own, self.stem, ("parameters", *self.inputs), None)


def _drops(module: Any) -> bool:
    share = getattr(module, "p", 0) if "Dropout" in type(module).__name__ else getattr(module, "dropout", 0)
    return isinstance(share, int | float) and share > 0


def _unsupported(reason: str) -> Callable[..., Any]:
    def stop(*_: Any, **__: Any) -> Any:
        raise Stop(UNSUPPORTED, reason)

    return stop


class _Steps:
    """The reference of an optimizer: its own steps in float64."""

    def __init__(self, torch: Any, make: Any) -> None:
        self.torch = torch
        self.make = make

    def __call__(self, *args: Any, **kwargs: Any) -> Made:
        def run(value: Any, gradient: Any) -> Any:
            """The parameter after STEPS, each with a multiple of `gradient`."""
            parameter = self.torch.nn.Parameter(value.detach().clone())
            optimizer = self.make([parameter], *args, **kwargs)
            for factor in STEPS:
                parameter.grad = gradient * factor
                optimizer.step()
            return parameter.detach()

        return Made(Oracle(self.torch, run, "step", ("parameter", "gradient"), None), own=run)
