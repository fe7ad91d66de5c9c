"""Layers and optimizers as cases: first made, then called.

    paddle.nn.LayerNorm(8)(Tensor([2, 8], "float32"))
    paddle.optimizer.SGD(0.1)(Tensor([8], "float32"), Tensor([8], "float32"))

The reference of a layer has its constructor's signature and gives a Made: the layer's parameters by their
names in the tested framework, and what it computes of them. A lane fills the parameters from the counter,
behind the case's own tensors in the order of their names, and differentiates by them too. An optimizer is
called with a parameter and a gradient; what the parameter is after one step for each of STEPS is compared,
so that what the optimizer keeps between steps counts as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.rules import AnyRule

LAYER, OPTIMIZER = "layer", "optimizer"
# The gradient of each step is the case's times this: of one that stays the same every average is that
# gradient, whatever the betas are. Powers of two round nothing; from the sixth on RAdam trusts its variance.
STEPS = (1.0, -0.5, 2.0, 0.25, -1.0, 0.5)


@dataclass(frozen=True)
class Made:
    """A layer: `call` takes the parameters, as a dict, and then what the layer is called with.

    `state` names the parameters that nothing is differentiated by: running statistics and the like. `call`
    then gives two results, the layer's and a dict of what they are afterwards. `constants` are neither
    differentiated by nor compared."""

    call: Callable[..., Any]
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rules: Mapping[str, AnyRule] = field(default_factory=dict)
    state: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    dtype: str = "float32"


def without(parameters: Mapping[str, tuple[int, ...]], **attributes: Any) -> dict[str, tuple[int, ...]]:
    """The parameters but those whose attribute, weight_attr or bias_attr, is False."""
    return {name: shape for name, shape in parameters.items() if attributes.get(name) is not False}
