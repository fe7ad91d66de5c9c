"""Layers and optimizers, as the tables register them, and how tensors may lie."""

import pytest
from assay.layers import LAYER, OPTIMIZER, Made, without
from assay.registry import Registry
from assay.rules import integers
from assay.spec import TensorSpec


def test_a_layer_is_made_and_then_called():
    registry = Registry()

    @registry.layer("paddle.nn.Thing", inputs="x y", like="paddle.f", y=integers(0, 2))
    def thing(size, bias_attr=None):
        return Made(lambda p, x, y: None, without({"bias": (size,)}, bias=bias_attr))

    registry.api("paddle.f", x=integers(0, 3), y=integers(0, 9), other=integers(0, 4))(
        lambda x, y, other: None
    )
    registry.settle()
    entry = registry["paddle.nn.Thing"]
    assert entry.kind == LAYER and entry.inputs == ("x", "y") and entry.parameters == ("size", "bias_attr")
    assert entry.rules == {"x": integers(0, 3), "y": integers(0, 2)}  # its own before those of its like
    assert entry.call(4).parameters == {"bias": (4,)} and entry.call(4, False).parameters == {}


def test_aliases_work_in_place_if_their_name_says_so():
    registry = Registry()
    registry.alias("paddle.f", "paddle.f_ paddle.Tensor.f")
    registry.alias("paddle.f", "paddle.g_", changes="y")
    registry.api("paddle.f")(lambda x, y: None)
    registry.settle()
    changes = {name: entry.changes for name, entry in registry.items()}
    assert changes == {"paddle.f": "", "paddle.f_": "x", "paddle.Tensor.f": "", "paddle.g_": "y"}
    registry.alias("paddle.f", "paddle.f_")
    with pytest.raises(ValueError, match="registered twice"):
        registry.settle()


def test_optimizers_take_a_parameter_and_its_gradient(apis):
    optimizers = [entry for entry in apis.values() if entry.kind == OPTIMIZER]
    assert len(optimizers) >= 13
    assert all(entry.inputs == ("parameter", "gradient") and entry.grad is not True for entry in optimizers)


@pytest.mark.parametrize(
    ("shape", "strides", "storage", "overlaps"),
    [
        ((2, 3), (), 6, False),
        ((2, 3), (1, 2), 6, False),
        ((2, 3), (0, 1), 3, False),
        ((2, 3), (1, 1), 4, True),
        ((2, 3), (10, 2), 15, False),
        ((0, 3), (1, 1), 0, False),
        ((1, 3), (1, 1), 3, False),
    ],
)
def test_memory_of_strided_tensors(shape, strides, storage, overlaps):
    spec = TensorSpec(shape, "float32", 0, strides)
    assert spec.storage() == storage
    assert not strides or spec.overlaps() == overlaps
