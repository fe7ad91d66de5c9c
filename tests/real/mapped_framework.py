"""Paddle and PyTorch with functions that say where their input lies, and one that writes into it."""

import ctypes
import os
import re

from assay.frameworks.paddle_framework import PaddleFramework
from assay.frameworks.torch_framework import TorchFramework

ELEMENTS = 16_777_216  # of float32: the fewest that lanes have in common
CASES = (
    f'paddle.any(Tensor([{ELEMENTS}], "float32"))',
    f'paddle.all(Tensor([{ELEMENTS - 1024}], "float32"))',
    f'paddle.sum(Tensor([{ELEMENTS}], "float32"))',
    f'paddle.neg(Tensor([{ELEMENTS}], "float32"))',
)


def is_common(address):
    """Whether memory belongs to the file that a slot's lanes have in common."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in re.match(r"(\w+)-(\w+) ", line).groups())
            if begin <= address < end:
                return "assay-inputs" in line
    raise AssertionError("an input lies nowhere")


def looking(right, common):
    def function(x, *args, **kwargs):
        if is_common(x.data_ptr()) != common:
            raise AssertionError("the input lies in the wrong memory")
        return right(x, *args, **kwargs)

    return function


def writing(right):
    """The right result, and then zeros in the input's first page."""

    def function(x, *args, **kwargs):
        result = right(x, *args, **kwargs)
        ctypes.memset(x.data_ptr(), 0, 4096)
        return result

    return function


def refuse_large(shape):
    """Neither lane has such an input, or upstream gradient, in memory of its own."""
    if list(shape) == [ELEMENTS]:
        raise AssertionError("a tensor that lanes have in common was made once more")


class Paddle(PaddleFramework):
    def resolve(self, api):
        name, right = api.rsplit(".", 1)[-1], super().resolve(api)
        return writing(right) if name == "sum" else looking(right, name != "all")

    def empty(self, shape, dtype):
        refuse_large(shape)
        return super().empty(shape, dtype)


class Torch(TorchFramework):
    def empty(self, shape, dtype):
        refuse_large(shape)
        return super().empty(shape, dtype)


def create():
    return Paddle() if os.environ["ASSAY_FRAMEWORK"] == "paddle" else Torch()
