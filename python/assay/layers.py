"""Layers and optimizers as cases: constructed first, then called.

    paddle.nn.LayerNorm(8)(Tensor([2, 8], "float32"))
    paddle.optimizer.SGD(0.1)(Tensor([8], "float32"), Tensor([8], "float32"))

The reference of a layer has its constructor's signature and returns a Made: the layer's parameters by their
names in the tested framework, and a function of them. A lane fills the parameters after the case's own
tensors, in the order of their names, and differentiates by them. An optimizer is called with a parameter and
a gradient. The parameter is compared after one step for each of STEPS, so that the optimizer's state counts
too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.rules import AnyRule

LAYER, OPTIMIZER = "layer", "optimizer"
# Factors of the gradient for each step. With a constant gradient every average would equal it, for all betas.
# Powers of two are exact. RAdam uses its variance from the sixth step on.
STEPS = (1.0, -0.5, 2.0, 0.25, -1.0, 0.5)


@dataclass(frozen=True)
class Made:
    """A layer. `call` takes the parameters, as a dict, and then the layer's inputs.

    `state` names the parameters without gradient, such as running statistics; `call` then returns the layer's
    result and a dict of their new values. `constants` are neither differentiated by nor compared. `own` is
    the tested layer in the same form, if it does not own its parameters; an optimizer's takes a parameter and
    a gradient.
    """

    call: Callable[..., Any]
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rules: Mapping[str, AnyRule] = field(default_factory=dict)
    state: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    dtype: str = "float32"
    own: Callable[..., Any] | None = None


def without(parameters: Mapping[str, tuple[int, ...]], **attributes: Any) -> dict[str, tuple[int, ...]]:
    """The parameters except those whose attribute (weight_attr, bias_attr) is False."""
    return {name: shape for name, shape in parameters.items() if attributes.get(name) is not False}
