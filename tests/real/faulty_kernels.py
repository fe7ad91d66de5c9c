"""Paddle with faults as kernels have them: in the tail of a vector, in one dtype or layout, the second call.

CASES has a case for each; every case is run with default settings.
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


def with_argument(**changed):
    return lambda right: lambda *args, **kwargs: right(*args, **{**kwargs, **changed})


def from_place(first, change):
    """Beyond the first so many elements something else comes out: an index that is too short."""

    def of(right):
        def wrong(*args, **kwargs):
            y = right(*args, **kwargs)
            beyond = (paddle.arange(y.size) >= first).reshape(y.shape)
            return paddle.where(beyond, change(y), y)

        return wrong

    return of


def tail(width, change):
    """What is left over after whole vectors of this width."""

    def of(right):
        def wrong(*args, **kwargs):
            y = right(*args, **kwargs)
            left = (paddle.arange(y.size) >= y.size // width * width).reshape(y.shape)
            return paddle.where(left, change(y), y)

        return wrong

    return of


def second_call(change):
    """What the first call left behind is taken for the second one's."""

    def of(right):
        kept = []

        def wrong(*args, **kwargs):
            y = right(*args, **kwargs)
            kept.append(y)
            return y if len(kept) == 1 else change(y, kept[0])

        return wrong

    return of


def at(values, change):
    """Wrong where the first argument has such values."""

    def of(right):
        def wrong(x, *args, **kwargs):
            y = right(x, *args, **kwargs)
            return paddle.where(values(x.detach()), change(y), y)

        return wrong

    return of


def gradient_times(factor):
    return then(lambda y: y.detach() + (y - y.detach()) * factor)


def gradient_of(position, factor):
    """The gradient of one argument is too large or too small."""

    def of(right):
        def wrong(*args, **kwargs):
            args = list(args)
            x = args[position]
            args[position] = x.detach() + (x - x.detach()) * factor
            return right(*args, **kwargs)

        return wrong

    return of


def naive_log_softmax(x, axis=-1):
    return paddle.log(paddle.exp(x) / paddle.exp(x).sum(axis, keepdim=True))


def one_pass_variance(x, axis=None, unbiased=True, keepdim=False):
    count = x.size if axis is None else x.shape[axis]
    mean, square = x.mean(axis, keepdim=keepdim), (x * x).mean(axis, keepdim=keepdim)
    return (square - mean * mean) * (count / (count - 1) if unbiased else 1)


def one_pass_layer_norm(x, shape, weight=None, bias=None, epsilon=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return (x - mean) / paddle.sqrt(variance + epsilon)


def in_float32(right):
    def wrong(x, *args, **kwargs):
        return right(x.astype("float32"), *args, **kwargs).astype(x.dtype)

    return wrong


def returns_only(x):
    """In place, but for the argument."""
    return paddle.exp(x)


def contiguous_only(right):
    """A kernel that takes the memory of its input as it lies."""

    def wrong(x, *args, **kwargs):
        if not x.is_contiguous():
            x = paddle.as_strided(x, [x.size], [1]).reshape(x.shape)
        return right(x, *args, **kwargs)

    return wrong


# case: fault
CASES = {
    # Places.
    "paddle.nn.functional.relu6(Tensor([70000],'float32'))": from_place(65536, lambda y: y * 0),
    "paddle.abs(Tensor([257],'float32'))": tail(8, lambda y: y * 0),
    "paddle.sin(Tensor([3, 5],'float32'))": tail(4, lambda y: y + 1e-4),
    "paddle.gather(Tensor([300, 4],'float32'), Tensor([20],'int64'))":
        lambda right: lambda x, index: right(x, paddle.minimum(index, paddle.full_like(index, 255))),
    "paddle.flip(Tensor([6, 7],'float32'), list[1])": lambda right: lambda x, axis: right(x, [0]),
    "paddle.logcumsumexp(Tensor([4, 50],'float32'), -1)": from_place(190, lambda y: y + 0.001),
    "paddle.transpose(Tensor([2, 3, 4],'float32'), list[-1, 0, 1])":
        lambda right: lambda x, perm: right(x, [1, 2, 0]),
    "paddle.scatter(Tensor([10, 3],'float32'), Tensor([6],'int64'), Tensor([6, 3],'float32'), False)":
        lambda right: lambda x, index, updates, overwrite: right(x, index, updates),
    "paddle.mode(Tensor([4, 10],'int64'))": then(lambda y: (y[0], y[1] * 0)),
    # Layouts and calls.
    "paddle.tanh(Tensor([8, 6],'float32'))": contiguous_only,
    "paddle.nn.functional.softsign(Tensor([4, 6],'float32'))": second_call(lambda y, first: first),
    "paddle.cos(Tensor([4, 6],'float32'))": second_call(lambda y, first: y * 1.001),
    # Dtypes.
    "paddle.sqrt(Tensor([40],'float64'))": in_float32,
    "paddle.atan(Tensor([40],'float64'))": then(lambda y: y * (1 + 1e-12)),
    "paddle.less_than(Tensor([40],'int64'), Tensor([40],'int64'))":
        lambda right: lambda x, y: right(x.astype("float64"), y.astype("float64")),
    "paddle.cumsum(Tensor([64],'int64'))": lambda right: lambda x: right(x.astype("int32")).astype("int64"),
    "paddle.bitwise_right_shift(Tensor([40],'int32'), Tensor([40],'int32'))":
        instead(lambda x, y: x // 2 ** y.astype("int32") + (x < 0).astype("int32")),
    # Shapes.
    "paddle.add(Tensor([5, 8],'float32'), Tensor([5, 1],'float32'))": gradient_of(1, 0.5),
    "paddle.multiply(Tensor([5, 8],'float32'), Tensor([8],'float32'))":
        lambda right: lambda x, y: right(x, y.detach()),
    "paddle.sum(Tensor([0, 3],'float32'))": then(lambda y: y + 1),
    "paddle.mean(Tensor([3, 1],'float32'), 1)": then(lambda y: y * 1.001),
    "paddle.matmul(Tensor([5, 3, 4],'float32'), Tensor([4, 2],'float32'))": gradient_of(1, 0.2),
    # Values.
    "paddle.maximum(Tensor([40],'float32'), Tensor([40],'float32'))":
        instead(lambda x, y: paddle.where(x > y, x, y)),
    "paddle.exp(Tensor([40],'float32'))": at(lambda x: x == -float("inf"), lambda y: y + float("nan")),
    "paddle.floor(Tensor([40],'float32'))": at(lambda x: x == 0, lambda y: y - 1),
    "paddle.rsqrt(Tensor([40],'float32'))": at(lambda x: x > 1e30, lambda y: y * 0),
    "paddle.log1p(Tensor([400],'float32'))": instead(lambda x: paddle.log(1 + x)),
    "paddle.expm1(Tensor([400],'float32'))": instead(lambda x: paddle.exp(x) - 1),
    "paddle.sinh(Tensor([400],'float32'))": instead(lambda x: (paddle.exp(x) - paddle.exp(-x)) / 2),
    "paddle.erf(Tensor([400],'float32'))": then(lambda y: y + 1e-6),
    "paddle.nn.functional.log_softmax(Tensor([8, 10],'float32'))": instead(naive_log_softmax),
    "paddle.nn.functional.softplus(Tensor([40],'float32'))":
        instead(lambda x: paddle.log(1 + paddle.exp(x))),
    "paddle.linalg.slogdet(Tensor([4, 4],'float32'))":
        then(lambda y: paddle.stack([paddle.abs(y[0]), y[1]])),
    "paddle.nn.functional.cosine_similarity(Tensor([4, 8],'float32'), Tensor([4, 8],'float32'))":
        with_argument(eps=1e-7),
    "paddle.linalg.matrix_rank(Tensor([4, 4],'float32'))": then(lambda y: y * 0 + 4),
    "paddle.isclose(Tensor([40],'float32'), Tensor([40],'float32'))": with_argument(rtol=1e-4),
    "paddle.allclose(Tensor([40],'float32'), Tensor([40],'float32'))": then(lambda y: paddle.ones_like(y)),
    "paddle.copysign(Tensor([40],'float32'), Tensor([40],'float32'))":
        instead(lambda x, y: paddle.abs(x) * paddle.where(y < 0, -1.0, 1.0)),
    "paddle.atan2(Tensor([40],'float32'), Tensor([40],'float32'))":
        lambda right: lambda x, y: right(x + 0.0, y),
    "paddle.nn.functional.hardswish(Tensor([40],'float32'))":
        at(lambda x: x == 3, lambda y: y * 0),
    "paddle.var(Tensor([50],'float32'))": instead(one_pass_variance),
    "paddle.nn.functional.layer_norm(Tensor([4, 64],'float32'), 64)": instead(one_pass_layer_norm),
    "paddle.ceil(Tensor([40],'float32'))": instead(lambda x: paddle.floor(x) + 1),
    "paddle.all(Tensor([40],'bool'))": instead(lambda x: paddle.any(x)),
    "paddle.isfinite(Tensor([40],'float32'))": instead(lambda x: paddle.logical_not(paddle.isnan(x))),
    "paddle.sign(Tensor([40],'float32'))": instead(lambda x: paddle.where(x >= 0, 1.0, -1.0)),
    "paddle.floor_divide(Tensor([40],'int32'), Tensor([40],'int32'))":
        instead(lambda x, y: paddle.trunc(x.astype("float64") / y.astype("float64")).astype("int32")),
    "paddle.nn.functional.smooth_l1_loss(Tensor([40],'float32'), Tensor([40],'float32'))":
        with_argument(delta=0.9),
    "paddle.nanmean(Tensor([4, 10],'float32'), 1)":
        instead(lambda x, axis: paddle.nansum(x, axis) / x.shape[axis]),
    "paddle.searchsorted(Tensor([20],'float32'), Tensor([30],'float32'))": with_argument(right=True),
    "paddle.cast(Tensor([40],'float32'), 'int32')":
        lambda right: lambda x, dtype: right(paddle.floor(x), dtype),
    # Gradients.
    "paddle.square(Tensor([4, 6],'float32'))": gradient_times(1.001),
    "paddle.nn.functional.prelu(Tensor([2, 3, 4],'float32'), Tensor([3],'float32'))": gradient_of(1, 0.9),
    "paddle.concat(list[Tensor([3, 4],'float32'),Tensor([2, 4],'float32')])":
        lambda right: lambda parts: right([parts[0], parts[1].detach()]),
    "paddle.nn.functional.leaky_relu(Tensor([40],'float32'))": gradient_times(-1.0),
    "paddle.kron(Tensor([2, 3],'float32'), Tensor([3, 2],'float32'))": gradient_of(0, 1.01),
    "paddle.nn.functional.grid_sample(Tensor([2, 3, 16, 16],'float32'), Tensor([2, 16, 16, 2],'float32'))":
        gradient_of(1, 1.01),
    "paddle.index_select(Tensor([10, 3],'float32'), Tensor([6],'int64'))":
        lambda right: lambda x, index: right(x, paddle.where(index == 0, paddle.ones_like(index), index)),
    # In place.
    "paddle.Tensor.exp_(Tensor([40],'float32'))": instead(returns_only),
    "paddle.Tensor.tanh_(Tensor([40],'float32'))":
        lambda right: lambda x: paddle.assign(paddle.tanh(x) * 0.999, x),
    "paddle.Tensor.scale_(Tensor([40],'float32'), 2.0, 1.0)":
        lambda right: lambda x, scale, bias: right(x, scale, bias, False),
    # Layers and optimizers.
    "paddle.nn.BatchNorm2D(4, 0.8)(Tensor([3, 4, 5, 5],'float32'))":
        lambda right: lambda channels, momentum: right(channels, 1 - momentum),
    "paddle.nn.LayerNorm(8, 0.001)(Tensor([6, 8],'float32'))":
        lambda right: lambda extent, epsilon: right(extent),
    "paddle.nn.Embedding(10, 4, 2)(Tensor([30],'int64'))":
        lambda right: lambda count, width, padding: right(count, width),
    "paddle.optimizer.Adam(0.1, 0.8, 0.95)(Tensor([8],'float64'), Tensor([8],'float64'))":
        lambda right: lambda rate, first, second, **kwargs: right(rate, first, 0.99, **kwargs),
    "paddle.optimizer.Momentum(0.1, 0.9)(Tensor([8],'float32'), Tensor([8],'float32'))":
        lambda right: lambda rate, momentum, **kwargs: right(rate, momentum, use_nesterov=True, **kwargs),
    "paddle.optimizer.SGD(0.1, weight_decay=0.01)(Tensor([8],'float32'), Tensor([8],'float32'))":
        lambda right: lambda rate, weight_decay, **kwargs: right(rate, **kwargs),
    # Draws.
    "paddle.randn(list[3000])": then(lambda y: paddle.concat([y[:1500], y[:1500]])),
    "paddle.normal(1.0, 2.0, list[2000])": instead(lambda mean, std, shape: paddle.normal(mean, 1.7, shape)),
    "paddle.uniform(list[3000], min=0.0, max=2.0)":
        instead(lambda shape, min, max: paddle.uniform(shape, min=0.0, max=1.9)),
    "paddle.Tensor.exponential_(Tensor([3000],'float32'), 3.0)":
        lambda right: lambda x, rate: right(x, 1 / rate),
    "paddle.Tensor.bernoulli_(Tensor([3000],'float32'), 0.3)": lambda right: lambda x, p: right(x, 1 - p),
    "paddle.binomial(Tensor([2000],'int64'), Tensor([2000],'float32'))": then(lambda y: y + 1),
    "paddle.standard_gamma(Tensor([3000],'float32'))": then(lambda y: y * 1.2),
    "paddle.multinomial(Tensor([40],'float32'), 10)":
        lambda right: lambda x, count: right(x, count, True),
    "paddle.nn.functional.rrelu(Tensor([3000],'float32'), 0.1, 0.3)":
        lambda right: lambda x, low, high: right(x, low, 0.25),
    "paddle.nn.functional.gumbel_softmax(Tensor([300, 8],'float32'), 0.5)":
        lambda right: lambda x, temperature: right(x),
    # Random projections.
    "paddle.linalg.svd_lowrank(Tensor([8, 6],'float32'), 3)":
        then(lambda parts: (parts[0], parts[1], paddle.concat([parts[2][:, 1:], parts[2][:, :1]], 1))),
    "paddle.linalg.pca_lowrank(Tensor([9, 7],'float32'), 4)":
        lambda right: lambda x, q: right(x, q, False),
}  # fmt: skip

FAULTS = {case.split("(")[0]: fault for case, fault in CASES.items()}


class Faulty(PaddleFramework):
    def resolve(self, name):
        right = super().resolve(name)
        return FAULTS[name](right) if name in FAULTS else right


def create():
    if os.environ["ASSAY_FRAMEWORK"] == "torch":
        return TorchFramework()
    return Faulty()
