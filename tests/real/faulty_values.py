"""Paddle with the faults that a pass did not exclude: the planted ones of the audit, by its numbers.

CASES has a case for each; every case is run with default settings.
"""

import os

from assay.frameworks.paddle_framework import PaddleFramework
from assay.frameworks.torch_framework import TorchFramework

try:
    import paddle
except ImportError:  # in the reference's environment, and where only CASES is wanted
    paddle = None


def with_argument(**changed):
    """The right function, called with other arguments."""
    return lambda right: lambda *args, **kwargs: right(*args, **{**kwargs, **changed})


def instead(wrong):
    return lambda right: wrong


def through(dtype):
    """Computed in another dtype."""

    def fault(right):
        def wrong(*args):
            wide = args[0].dtype
            return right(*(arg.astype(dtype) for arg in args)).astype(wide)

        return wrong

    return fault


def half_away(x):
    return paddle.sign(x) * paddle.floor(paddle.abs(x) + 0.5)


def truncated_remainder(x, y):
    return x - y * paddle.trunc(x / y)


def without_duplicates(right):
    """Of several updates of one place the last one stays."""

    def wrong(x, index, updates):
        return paddle.assign(x).scatter_(index.flatten(), x.gather(index.flatten()) + updates)

    return wrong


def counting_ignored(right):
    def wrong(x, label, **kwargs):
        total = paddle.nn.functional.cross_entropy(x, label, reduction="sum", **kwargs)
        return total / label.shape[0]

    return wrong


def contiguous_read(right):
    """A kernel that takes the memory of its input as it lies."""

    def wrong(x):
        if not x.is_contiguous():
            whole = paddle.as_strided(x, [x.size], [1], x.offset if hasattr(x, "offset") else 0)
            x = whole.reshape(x.shape)
        return right(x)

    return wrong


def fresh_mask(x, p):
    """The backward draws a mask of its own."""
    kept = (paddle.rand(x.shape) >= p).astype(x.dtype) / (1 - p)
    other = (paddle.rand(x.shape) >= p).astype(x.dtype) / (1 - p)
    return (x.detach() * kept) + (x - x.detach()) * other


def half_of_gradient(right):
    """The gradient of what is broadcast lacks a part of the sum."""
    return lambda x, y: right(x, y.detach() + (y - y.detach()) * 0.5)


CASES = {
    "paddle.nn.functional.layer_norm(Tensor([4, 16],'float32'), 16)": with_argument(epsilon=1e-3),  # 1
    "paddle.nn.functional.gelu(Tensor([40],'float32'), True)":
        lambda right: lambda x, approximate: right(x, False),  # 2
    "paddle.var(Tensor([200],'float32'))": with_argument(unbiased=False),  # 3
    "paddle.nn.functional.local_response_norm(Tensor([2, 6, 4, 4],'float32'), 5)":
        instead(lambda x, size: x + 0),  # 4
    "paddle.exp(Tensor([40],'float64'))": through("float32"),  # 5
    "paddle.add(Tensor([40],'int64'), Tensor([40],'int64'))": through("int32"),  # 6
    "paddle.multiply(Tensor([40],'int64'), Tensor([40],'int64'))": through("float32"),  # 6
    "paddle.round(Tensor([40],'float32'))": instead(half_away),  # 8
    "paddle.remainder(Tensor([40],'float32'), Tensor([40],'float32'))": instead(truncated_remainder),  # 9
    "paddle.nansum(Tensor([40],'float32'))": instead(lambda x: paddle.sum(x)),  # 10
    "paddle.scatter_nd_add(Tensor([10, 3],'float32'), Tensor([6, 1],'int64'), Tensor([6, 3],'float32'))":
        without_duplicates,  # 11
    "paddle.nn.functional.cross_entropy(Tensor([10, 5],'float32'), Tensor([10],'int64'))":
        counting_ignored,  # 12
    "paddle.nn.functional.batch_norm(Tensor([4, 3, 5],'float32'), Tensor([3],'float32'), "
    "Tensor([3],'float32'), Tensor([3],'float32'), Tensor([3],'float32'), training=True)":
        lambda right: lambda x, m, v, *rest, **kw: right(x, m.clone(), v.clone(), *rest, **kw),  # 13
    "paddle.nn.functional.mse_loss(Tensor([64],'float32'), Tensor([64],'float32'))":
        lambda right: lambda *args: right(*args).detach(),  # 14
    "paddle.nn.functional.dropout(Tensor([64, 64],'float32'), p=0.3)": instead(fresh_mask),  # 15
    "paddle.abs(Tensor([8, 6],'float32'))": contiguous_read,  # 16
    "paddle.subtract(Tensor([20, 8],'float32'), Tensor([8],'float32'))": half_of_gradient,  # 18
    "paddle.maximum(Tensor([40],'float32'), Tensor([40],'float32'))":
        lambda right: lambda x, y: right(x, y.detach()),  # 19
    "paddle.nn.functional.max_pool2d(Tensor([1, 2, 7, 7],'float32'), 2, 2, 0, False, True)":
        lambda right: lambda x, size, stride, padding, mask, ceil: right(x, size, stride, padding),  # 20
    "paddle.nn.functional.avg_pool2d(Tensor([1, 2, 8, 8],'float32'), 3, 2, 1)":
        with_argument(exclusive=False),  # 21
    "paddle.sum(Tensor([5, 5],'float32'), -1)": lambda right: lambda x, axis: right(x, 0),  # 22
    "paddle.Tensor.add_(Tensor([40],'float32'), Tensor([40],'float32'))": instead(lambda x, y: x + y),  # 23
    "paddle.nn.functional.alpha_dropout(Tensor([64, 64],'float32'), 0.3)":
        instead(lambda x, p: x * (paddle.rand(x.shape) >= p).astype(x.dtype)),  # 24
    "paddle.randint(0, 10, list[300,])": instead(lambda low, high, to: paddle.randint(low, 11, to)),  # 25
}  # fmt: skip

FAULTS = {case.split("(")[0]: fault for case, fault in CASES.items()}

# Faults of Paddle 3.3.1 as it is; each is traced in docs/findings.
OWN_FAULTS = (
    "paddle.nn.functional.log_softmax(Tensor([4, 8],'float32'))",
    "paddle.nn.functional.cross_entropy(Tensor([10, 5],'float32'), Tensor([10],'int64'))",
    "paddle.nn.functional.silu(Tensor([20],'float32'))",
    "paddle.prod(Tensor([4, 3],'float32'), 1)",
    "paddle.nn.functional.celu(Tensor([20],'float32'))",
    "paddle.nn.functional.relu(Tensor([20],'float32'))",
    "paddle.logsumexp(Tensor([2],'float32'))",
    "paddle.sinc(Tensor([20],'float32'))",
)


class Faulty(PaddleFramework):
    def resolve(self, name):
        return FAULTS[name](super().resolve(name))


def create():
    if os.environ["ASSAY_FRAMEWORK"] == "torch":
        return TorchFramework()
    return Faulty()
