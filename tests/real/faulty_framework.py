"""Paddle with faults: each API named here gives a wrong result, in a way of its own.

What stands in FAULTS makes the wrong function from the right one; CASES has a case for each.
"""

import os

from assay.frameworks.paddle_framework import PaddleFramework
from assay.frameworks.torch_framework import TorchFramework

try:
    import paddle
except ImportError:  # in the reference's environment, and where only CASES is wanted
    paddle = None


def at_largest(y):
    """True at the element of y that is farthest from 0."""
    size = paddle.abs(y).flatten()
    return (paddle.arange(size.shape[0]) == paddle.argmax(size)).reshape(y.shape)


def one_off(right):
    """A twentieth more in one element, and so in its gradients."""

    def wrong(*args, **kwargs):
        y = right(*args, **kwargs)
        return y + 0.05 * y * at_largest(y.detach()).astype(y.dtype)

    return wrong


def then(change):
    """The right result, changed."""
    return lambda right: lambda *args, **kwargs: change(right(*args, **kwargs))


def gradient_times(factor):
    """The right result with gradients that are not."""
    return then(lambda y: y.detach() + (y - y.detach()) * factor)


def without_gradient(position):
    """One input is taken for a constant."""

    def fault(right):
        def wrong(*args, **kwargs):
            args = [arg.detach() if i == position else arg for i, arg in enumerate(args)]
            return right(*args, **kwargs)

        return wrong

    return fault


def nan_somewhere(y):
    return paddle.where(at_largest(y), paddle.full_like(y, float("nan")), y)


def instead(wrong):
    """Another function altogether."""
    return lambda right: wrong


def mask_of(shape, share):
    return (paddle.rand(shape) < share).astype("float32")


def straight(x, y):
    """y, with the gradient of x times the scale that is kept: as if nothing had been dropped."""
    return y.detach() + (x - x.detach()) / 0.7


def alpha_dropout(x, p=0.5, training=True, name=None):
    y = paddle.nn.functional.alpha_dropout(x, p)
    fallen = paddle.min(y)
    return paddle.where(y == fallen, fallen * 0.95, y)


# case: fault
CASES = {
    "paddle.exp(Tensor([4, 6],'float32'))": one_off,
    "paddle.mean(Tensor([100],'float32'))": one_off,
    "paddle.square(Tensor([100],'float32'))": one_off,
    "paddle.bmm(Tensor([2, 3, 2],'float32'), Tensor([2, 2, 4],'float32'))": one_off,
    "paddle.nn.functional.softmax(Tensor([16, 64],'float32'))": one_off,
    "paddle.nn.functional.mse_loss(Tensor([64],'float32'), Tensor([64],'float32'))": one_off,
    "paddle.nn.functional.avg_pool2d(Tensor([1, 2, 8, 8],'float32'), 4)": one_off,
    "paddle.matmul(Tensor([8, 8],'float32'), Tensor([8, 8],'float32'))": then(lambda y: y.t()),
    "paddle.sin(Tensor([4, 6],'float32'))": then(nan_somewhere),
    "paddle.cos(Tensor([4, 6],'float32'))": then(lambda y: y.astype("float64")),
    "paddle.tanh(Tensor([4, 6],'float32'))": gradient_times(0),
    "paddle.sqrt(Tensor([40],'float32'))": gradient_times(1.05),
    "paddle.multiply(Tensor([40],'float32'), Tensor([40],'float32'))": without_gradient(1),
    "paddle.nn.functional.linear(Tensor([4, 8],'float32'), Tensor([8, 3],'float32'), Tensor([3],'float32'))":
        without_gradient(2),
    "paddle.argmax(Tensor([10, 7],'int64'), 1)": then(lambda y: (y + 1) % 7),
    "paddle.greater_than(Tensor([40],'float32'), Tensor([40],'float32'))":
        then(lambda y: paddle.logical_xor(y, paddle.arange(40) == 7)),
    "paddle.split(Tensor([6, 4],'float32'), 3)": then(lambda parts: parts[::-1]),
    "paddle.unique(Tensor([40],'int64'), return_counts=True)": then(lambda pair: pair[0]),
    "paddle.topk(Tensor([40],'float32'), 3)": then(lambda pair: (pair[0], pair[1].astype("int32"))),
    "paddle.unsqueeze(Tensor([4, 6],'float32'), 0)": then(lambda y: y.squeeze(0)),
    "paddle.cumsum(Tensor([40],'float32'), 0)": then(lambda y: paddle.concat([y[:1] * 0, y[:-1]])),
    "paddle.Tensor.add_(Tensor([40],'float32'), Tensor([40],'float32'))": instead(lambda x, y: x + y),
    "paddle.Tensor.clip_(Tensor([40],'float32'), 0.0)": instead(lambda x, low: x),
    "paddle.nn.functional.relu(Tensor([40],'float32'))":
        instead(lambda x, name=None: paddle.where(x > 0, x, 0.01 * x)),
    # Random APIs, which are judged by what they promise.
    "paddle.nn.functional.dropout(Tensor([64, 64],'float32'), p=0.3)":
        instead(lambda x, p: x * mask_of(x.shape, 0.7)),
    "paddle.nn.functional.dropout2d(Tensor([16, 8, 4, 4],'float32'), p=0.3)":
        instead(lambda x, p: x * mask_of(x.shape, 0.7) / 0.7),
    "paddle.nn.functional.dropout3d(Tensor([64, 64, 1, 1, 1],'float32'), p=0.3)":
        instead(lambda x, p: x * mask_of(x.shape, 0.3) / 0.7),
    "paddle.nn.functional.alpha_dropout(Tensor([64, 64],'float32'), p=0.3)": instead(alpha_dropout),
    "paddle.nn.functional.feature_alpha_dropout(Tensor([64, 64],'float32'), p=0.3)":
        lambda right: lambda x, p: straight(x, right(x, p)),
    "paddle.multinomial(Tensor([200],'float32'), 5000, True)":
        lambda right: lambda x, *rest: right((x > 0).astype("float32"), *rest),
    "paddle.randint(0, 10, list[300,])": instead(lambda low, high, shape: paddle.randint(low, 11, shape)),
    "paddle.randint_like(Tensor([3000],'int64'), 0, 10)":
        instead(lambda x, low, high: paddle.randint(low, 9, x.shape)),
    "paddle.normal(0.0, 1.0, list[100,100])": then(lambda y: y * 1.1),
    "paddle.uniform(list[5000], min=-1.0, max=1.0)": then(lambda y: paddle.abs(y)),
    "paddle.randperm(100)": instead(lambda n: paddle.arange(n)),
    "paddle.bernoulli(Tensor([50, 40],'float32'))": then(lambda y: 1 - y),
    "paddle.poisson(Tensor([50, 40],'float32'))": then(lambda y: y + 1),
    "paddle.randn(list[100,100], dtype='complex64')": then(lambda y: paddle.complex(y.real(), y.imag() * 0)),
    "paddle.Tensor.exponential_(Tensor([5000],'float32'), 2.0)":
        instead(lambda x, rate: paddle.assign(paddle.rand(x.shape), x)),
    "paddle.rand(list[5000])": then(lambda y: paddle.cast(y * 16, "int32").astype("float32") / 16),
}  # fmt: skip

FAULTS = {case.split("(")[0]: fault for case, fault in CASES.items()}


class Faulty(PaddleFramework):
    def resolve(self, name):
        return FAULTS[name](super().resolve(name))


def create():
    if os.environ["ASSAY_FRAMEWORK"] == "torch":
        return TorchFramework()
    return Faulty()
