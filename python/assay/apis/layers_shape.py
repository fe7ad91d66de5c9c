"""Layers without parameters that change a shape: padding, flattening, upsampling."""

from assay.apis.padding import pad
from assay.apis.resize import interpolate
from assay.apis.windows import LAYOUTS
from assay.layers import Made
from assay.reference import torch
from assay.registry import layer

_LIKE = "paddle.nn.functional.interpolate"


def _sides(padding, rank):
    return [padding] * 2 * rank if isinstance(padding, int) else padding


def _pads(rank, letter, layout):
    def made(padding, mode, value, data_format):
        return Made(lambda _, x: pad(x, _sides(padding, rank), mode, value, data_format))

    def of_mode(kind, mode):
        @layer(f"paddle.nn.{kind}Pad{rank}{letter}", inputs="x")
        def padded(padding, data_format=layout, name=None):
            return made(padding, mode, 0.0, data_format)

    for kind, mode in (("Circular", "circular"), ("Reflection", "reflect"), ("Replication", "replicate")):
        of_mode(kind, mode)
    of_mode("Zero", "constant")

    @layer(f"paddle.nn.ConstantPad{rank}{letter}", inputs="x")
    def constant(padding, value, data_format=layout, name=None):
        return made(padding, "constant", value, data_format)

    if letter == "D":

        @layer(f"paddle.nn.Pad{rank}D", inputs="x")
        def any_mode(padding, mode="constant", value=0.0, data_format=layout, name=None):
            return made(padding, mode, value, data_format)


for _rank, _layout in enumerate(LAYOUTS, 1):
    for _letter in "Dd":
        _pads(_rank, _letter, _layout)


@layer("paddle.nn.Flatten", inputs="input")
def flatten(start_axis=1, stop_axis=-1):
    return Made(lambda _, x: torch.flatten(x, start_axis, stop_axis))


@layer("paddle.nn.Unflatten", inputs="input")
def unflatten(axis, shape, name=None):
    return Made(lambda _, x: torch.unflatten(x, axis, tuple(shape)))


@layer("paddle.nn.Identity", inputs="input")
def identity(*args, **kwargs):
    return Made(lambda _, x: x)


@layer("paddle.nn.Softmax2D", inputs="x")
def softmax2d(name=None):
    return Made(lambda _, x: torch.softmax(x, -3))


@layer("paddle.nn.UpsamplingBilinear2D", "paddle.nn.UpsamplingBilinear2d", inputs="x", like=_LIKE)
def bilinear(size=None, scale_factor=None, data_format="NCHW", name=None):
    return Made(lambda _, x: interpolate(x, size, scale_factor, "bilinear", True, 0, data_format))


@layer("paddle.nn.UpsamplingNearest2D", "paddle.nn.UpsamplingNearest2d", inputs="x", like=_LIKE)
def nearest(size=None, scale_factor=None, data_format="NCHW", name=None):
    return Made(lambda _, x: interpolate(x, size, scale_factor, "nearest", False, 0, data_format))
