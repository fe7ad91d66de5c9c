"""Paddle with kernels that round, or overflow, elsewhere than the CPU's, as those of a GPU do; and with one
fault.

CASES has the outcome of each case.
"""

import os

from assay.frameworks.paddle_framework import PaddleFramework
from assay.frameworks.torch_framework import TorchFramework

try:
    import paddle
except ImportError:  # in the reference's environment, and where only CASES is wanted
    paddle = None


def with_gradient(change):
    """The right function; `change(gradient, x)` is its gradient."""

    def of(right):
        class Other(paddle.autograd.PyLayer):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return paddle.assign(x)

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensor()
                return change(gradient, x)

        return lambda x, *args, **kwargs: right(Other.apply(x), *args, **kwargs)

    return of


def noise(size):
    """As if terms had been rounded that are this large where x is about 1."""

    def rounded(gradient, x):
        return gradient + size / paddle.max(paddle.abs(x)) * paddle.sign(paddle.sin(1e3 * x))

    return with_gradient(rounded)


def nan_of_large(gradient, x):
    """The square of x overflows, and infinity by infinity is NaN."""
    return paddle.where(paddle.abs(x) > 1e160, paddle.full_like(gradient, float("nan")), gradient)


def zero_of_large(gradient, x):
    """The square of x overflows, and a number by infinity is 0."""
    return paddle.where(paddle.abs(x) > 1e160, paddle.zeros_like(gradient), gradient)


CASES = {
    'paddle.linalg.corrcoef(Tensor([1, 64],"float32"))': (noise(2.0**-28), "pass"),
    'paddle.nn.functional.softmax(Tensor([2, 3],"float32"))': (noise(2.0**-8), "mismatch"),
    'paddle.asinh(Tensor([600],"float64"))': (with_gradient(zero_of_large), "pass"),
    # PyTorch's own gradient is NaN there, and another kernel's 0.
    'paddle.asin(Tensor([600],"complex128"))': (with_gradient(zero_of_large), "pass"),
    # PyTorch's is a number.
    'paddle.atan(Tensor([600],"complex128"))': (with_gradient(nan_of_large), "mismatch"),
    'paddle.neg(Tensor([600],"float64"))': (with_gradient(nan_of_large), "mismatch"),
}
FAULTS = {case.split("(")[0]: fault for case, (fault, _) in CASES.items()}


class Other(PaddleFramework):
    def resolve(self, name):
        return FAULTS[name](super().resolve(name))


def create():
    if os.environ["ASSAY_FRAMEWORK"] == "torch":
        return TorchFramework()
    return Other()
