"""Paddle with faults that only values drawn on purpose, a bar of half precision, or tests of draws show.

CASES has a case for each. Every fault must be found under every seed.
"""

import os

from assay.frameworks.paddle_framework import PaddleFramework
from assay.frameworks.torch_framework import TorchFramework

try:
    import paddle
except ImportError:  # in the reference's environment, and where only CASES is wanted
    paddle = None


def instead(wrong):
    return lambda right: wrong


def then(change):
    """The right result, changed."""
    return lambda right: lambda *args, **kwargs: change(right(*args, **kwargs))


def added_in_bfloat16(x, axis):
    """Each addition is rounded."""
    columns = x.detach().astype("float32")
    total = paddle.zeros([x.shape[0]], "float32")
    for column in paddle.unbind(columns, 1):
        total = (total + column).astype("bfloat16").astype("float32")
    right = paddle.sum(x, axis)
    right = right.astype("float32")
    return (total + (right - right.detach())).astype("bfloat16")


def times(factor):
    """The identity, whose gradient is multiplied."""

    class Times(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return paddle.assign(x)

        @staticmethod
        def backward(ctx, gradient):
            return (gradient.astype("float32") * factor).astype(gradient.dtype)

    return Times


def gradient_of(position, factor):
    """The gradient of one argument is too large."""

    def of(right):
        def wrong(*args, **kwargs):
            args = list(args)
            args[position] = times(factor).apply(args[position])
            return right(*args, **kwargs)

        return wrong

    return of


def one_by_one(x):
    """One float32 accumulator."""
    return paddle.cumsum(x.flatten(), 0)[-1]


def last_lost(size):
    """The last valid index reads the element before it."""

    def of(right):
        def wrong(x, index, *args, **kwargs):
            return right(x, paddle.minimum(index, paddle.full_like(index, size - 2)), *args, **kwargs)

        return wrong

    return of


def nan_lost(x):
    """NaN is replaced by the largest number of its row."""
    return paddle.where(paddle.isnan(x), paddle.max(paddle.nan_to_num(x), -1, keepdim=True), x)


def index_of_another(right):
    """Where there is NaN, the first index is that of another element."""

    def wrong(x, *args, **kwargs):
        values, index = right(x, *args, **kwargs)
        missing = paddle.any(paddle.isnan(x), -1, keepdim=True)
        other = paddle.concat([(index[:, :1] + 1) % x.shape[-1], index[:, 1:]], -1)
        return values, paddle.where(missing, other, index)

    return wrong


def by_quotient(right):
    """A quotient with more digits than the dtype has leaves more than the divisor."""

    def wrong(x, y):
        large = paddle.abs(x / y) > 1e20
        return paddle.where(large, x - paddle.floor(x / y) * y, right(x, y))

    return wrong


def first_class_lost(right):
    """Labels of class 0 have no loss."""

    def wrong(x, label, **kwargs):
        loss = right(x, label, reduction="none", **kwargs)
        return paddle.mean(loss * (label != 0).astype(loss.dtype).reshape(loss.shape))

    return wrong


def ties_reversed(right):
    def wrong(x, *args, **kwargs):
        size = x.shape[0]
        return size - 1 - paddle.flip(right(paddle.flip(-x, [0]), *args, **kwargs), [0]).flip(0)

    return wrong


def second_as_it_lies(right):
    """The second argument's memory is read from its first element on."""

    def wrong(x, y):
        if not y.is_contiguous():
            offset = y.data_ptr() - paddle.as_strided(y, [1], [1], 0).data_ptr()
            y = paddle.as_strided(y, [y.size], [1], offset // 4).reshape(y.shape)
        return right(x, y)

    return wrong


def computed_in(dtype):
    """Whole numbers are computed in this dtype."""

    def of(right):
        def wrong(x, *args):
            found = right(x.astype(dtype), *args)
            if isinstance(found, tuple):
                return found[0].astype(x.dtype), found[1]
            return found.astype(x.dtype)

        return wrong

    return of


def contiguous_only(right):
    """In place, a strided view is not written."""
    return lambda x, y: right(x, y) if x.is_contiguous() else x


def beside_a_zero(right):
    """The loop starts with 0 instead of the first element."""

    def wrong(x):
        return right(paddle.concat([x, paddle.zeros([1], x.dtype)])) % x.shape[0]

    return wrong


def row_repeated(y):
    return paddle.concat([y[:1], y[:1], y[2:]])


def own_seed(right):
    """The generator's seed has no effect."""

    def wrong(*args, **kwargs):
        paddle.seed(1234)
        return right(*args, **kwargs)

    return wrong


def no_seed(right):
    """Draws do not depend on the seed alone."""
    calls = []

    def wrong(*args, **kwargs):
        calls.append(None)
        paddle.seed(len(calls))
        return right(*args, **kwargs)

    return wrong


def coarse(dtype):
    """Draws with the resolution of half precision."""

    def of(right):
        def wrong(x, *args, **kwargs):
            return paddle.assign(right(x, *args, **kwargs).astype(dtype).astype(x.dtype), x)

        return wrong

    return of


def overwritten_first(right):
    return lambda x, y: right(x.set_value(paddle.zeros_like(x)) or x, y + 1) if x is y else right(x, y)


def in_memory_of_its_own(right):
    """The tensor shows the result, but a tensor that it is a view of does not."""

    def wrong(x, y):
        result = right(paddle.assign(x), y)
        result._share_buffer_to(x)
        return x

    return wrong


# case: fault
CASES = {
    # Half precision.
    "paddle.sum(Tensor([32, 5000],'bfloat16'), 1)": instead(added_in_bfloat16),
    "paddle.expand(Tensor([1, 8],'bfloat16'), list[3000, 8])": gradient_of(0, 1.06),
    "paddle.multiply(Tensor([3000, 8],'bfloat16'), Tensor([8],'bfloat16'))": gradient_of(1, 1.06),
    # An operation of mixed dtypes computes in the wider one.
    "paddle.Tensor.multiply(Tensor([40],'float32'), Tensor([40],'float64'))": gradient_of(1, 1),
    # The same tensor again: its second gradient is lost; an operand is overwritten before it is read.
    "paddle.add(Tensor([4, 6],'float32'), Tensor#1)": lambda right: lambda x, y: right(x, y.detach()),
    "paddle.Tensor.subtract_(Tensor([4, 6],'float32'), Tensor#1)": overwritten_first,
    # A view is changed, and its base with it.
    "paddle.Tensor.add_(Tensor([4, 6],'int64'), Tensor([4, 6],'int64'))": in_memory_of_its_own,
    "paddle.Tensor.multiply_(Tensor([4, 6],'float32'), Tensor([4, 6],'float32'))": contiguous_only,
    # Long sums.
    "paddle.Tensor.sum(Tensor([300, 300],'float32'))": instead(one_by_one),
    # What matters is drawn on purpose.
    "paddle.gather(Tensor([3000, 2],'float32'), Tensor([5],'int64'))": last_lost(3000),
    "paddle.index_select(Tensor([3000, 2],'float32'), Tensor([5],'int64'))": last_lost(3000),
    "paddle.nn.functional.embedding(Tensor([6],'int64'), Tensor([3000, 2],'float32'))":
        lambda right: lambda index, weight:
            right(paddle.where(index == 0, paddle.ones_like(index), index), weight),
    "paddle.nn.functional.nll_loss(Tensor([6, 100],'float32'), Tensor([6],'int64'))": first_class_lost,
    "paddle.all(Tensor([6, 40],'bool'), 1)": then(lambda y: paddle.zeros_like(y)),
    "paddle.signbit(Tensor([9],'float32'))": instead(lambda x: x < 0),
    "paddle.argsort(Tensor([12],'float32'), stable=True)": ties_reversed,
    "paddle.kthvalue(Tensor([40],'int64'), 3)": computed_in("float32"),
    "paddle.Tensor.sort(Tensor([40],'int32'))": computed_in("float32"),
    "paddle.argmin(Tensor([40],'int32'))": beside_a_zero,
    "paddle.argmax(Tensor([40],'int64'))": beside_a_zero,
    "paddle.subtract(Tensor([4, 6],'float32'), Tensor([4, 6],'float32'))": second_as_it_lies,
    # What is not promised is consistent.
    "paddle.sort(Tensor([40, 9],'float32'))": then(nan_lost),
    "paddle.topk(Tensor([40, 9],'float32'), 3)": index_of_another,
    "paddle.Tensor.topk(Tensor([40, 9],'float32'), 3, sorted=False)": index_of_another,
    "paddle.remainder(Tensor([400],'float32'), Tensor([400],'float32'))": by_quotient,
    # Random draws.
    "paddle.rand(list[600])": then(lambda y: paddle.floor(y * 4096) / 4096),
    "paddle.Tensor.exponential_(Tensor([2000],'float32'))": coarse("float16"),
    "paddle.normal(0.0, 1.0, list[4, 5000])": then(row_repeated),
    "paddle.poisson(Tensor([300, 1000],'float32'))":
        lambda right: lambda x: right(paddle.where(x < 1, x * 1.1, x)),
    "paddle.bernoulli(Tensor([300, 1000],'float32'))":
        lambda right: lambda x: right(paddle.round(x * 8) / 8),
    "paddle.uniform(list[50])": own_seed,
    "paddle.randn(list[50])": no_seed,
}  # fmt: skip

FAULTS = {case.split("(")[0]: fault for case, fault in CASES.items()}


class Faulty(PaddleFramework):
    def resolve(self, name):
        return FAULTS[name](super().resolve(name))


def create():
    if os.environ["ASSAY_FRAMEWORK"] == "torch":
        return TorchFramework()
    return Faulty()
