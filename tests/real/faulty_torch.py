"""PyTorch with faults as its bug reports have them: values that only a draw on purpose shows.

CASES has a case for each; the number in a comment is that of the report on GitHub. Every fault must be found
under every seed.
"""

from assay.frameworks.torch_framework import TorchFramework

try:
    import torch
except ImportError:  # where only CASES is wanted
    torch = None

INF, NAN = float("inf"), float("nan")


def instead(wrong):
    return lambda right: wrong


def then(change):
    """The right result, changed."""
    return lambda right: lambda *args, **kwargs: change(right(*args, **kwargs))


def where(values, change):
    """Wrong where the first argument has such values."""

    def of(right):
        def wrong(x, *args, **kwargs):
            found = right(x, *args, **kwargs)
            return torch.where(values(x.detach()), change(found), found)

        return wrong

    return of


def starting_at_zero(right):
    """The accumulator's unused lanes hold 0."""
    return lambda x: right(torch.cat([x.flatten(), x.new_zeros(1)]))


def index_beside_zero(right):
    return lambda x: right(torch.cat([x, x.new_zeros(1)])) % len(x)


def in_own_dtype(x, y):
    """Quotient and floor are rounded to half precision."""
    return torch.floor(x / y)


def masked(bits):
    """The hardware takes the shift count modulo the width."""
    return lambda right: lambda x, y: right(x, y % bits)


def saturated(right):
    """The smallest number divided by -1 gives the largest one."""

    def wrong(x, y):
        info = torch.iinfo(x.dtype)
        return torch.where((x == info.min) & (y == -1), info.max, right(x, y))

    return wrong


def clamped_index(position):
    """Negative indices count as 0."""

    def of(right):
        def wrong(*args, **kwargs):
            args = list(args)
            args[position] = args[position].clamp(min=0)
            return right(*args, **kwargs)

        return wrong

    return of


def to_the_end(right):
    """The last bag takes all indices that are left."""

    def wrong(index, weight, offsets, **kwargs):
        offsets = torch.cat([offsets[:-1], offsets.new_tensor([len(index)])])
        return right(index, weight, offsets, **kwargs)

    return wrong


def summed_in_half(x):
    return x.detach().float().sum().half() / x.numel() + (x - x.detach()).mean()


def in_int32(right):
    return lambda *args: right(*(arg.int() for arg in args)).long()


def infinite_beyond(limit):
    """Overflows a little too early."""

    def of(right):
        def wrong(x):
            found = right(x)
            return torch.where(found.abs() > torch.finfo(x.dtype).max / limit, found * INF, found)

        return wrong

    return of


def positive_zero(right):
    return lambda x: right(x) + 0.0


def one_cycle(right):
    """Sattolo's algorithm: no element keeps its place."""

    def wrong(n):
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = int(torch.randint(0, i, (1,)))
            order[i], order[j] = order[j], order[i]
        return torch.tensor(order)

    return wrong


def through_float64(x, y):
    return torch.isin(x.double(), y.double())


def as_products(x, c, y):
    """A selection by multiplication: NaN times 0 is NaN."""
    return x * ~c + y * c


def without_eps(x):
    return x / torch.sqrt((x * x).sum(1, keepdim=True))


# case: fault
CASES = {
    # Whole numbers in half precision (193754).
    'torch.floor_divide(Tensor([40], "bfloat16"), Tensor([40], "bfloat16"))': instead(in_own_dtype),
    'torch.div(Tensor([40], "float16"), Tensor([40], "float16"), rounding_mode="floor")':
        instead(lambda x, y, rounding_mode: torch.floor(x / y)),
    'torch.remainder(Tensor([40], "bfloat16"), Tensor([40], "bfloat16"))':
        instead(lambda x, y: x - torch.floor(x / y) * y),
    'torch.fmod(Tensor([40], "float16"), Tensor([40], "float16"))':
        instead(lambda x, y: x - torch.trunc(x / y) * y),
    # Whole numbers of one sign (191499).
    'torch.amin(Tensor([20], "int8"))': starting_at_zero,
    'torch.amax(Tensor([20], "int8"))': starting_at_zero,
    'torch.min(Tensor([20], "uint8"))': starting_at_zero,
    'torch.max(Tensor([20], "int32"))': starting_at_zero,
    'torch.argmin(Tensor([20], "int8"))': index_beside_zero,
    'torch.argmax(Tensor([20], "int8"))': index_beside_zero,
    'torch.Tensor.amin(Tensor([20], "int64"))': starting_at_zero,
    # The smallest number and -1.
    'torch.Tensor.__floordiv__(Tensor([40], "int32"), Tensor([40], "int32"))': saturated,
    'torch.Tensor.floor_divide(Tensor([40], "int64"), Tensor([40], "int64"))': saturated,
    'torch.Tensor.remainder(Tensor([40], "int8"), Tensor([40], "int8"))':
        lambda right: lambda x, y: torch.where((x == -128) & (y == -1), -1, right(x, y)),
    # Shifts by the width and beyond (70904).
    'torch.bitwise_left_shift(Tensor([40], "int32"), Tensor([40], "int32"))': masked(32),
    'torch.bitwise_right_shift(Tensor([40], "int64"), Tensor([40], "int64"))': masked(64),
    'torch.Tensor.bitwise_right_shift(Tensor([40], "int8"), Tensor([40], "int8"))':
        lambda right: lambda x, y: torch.where(y > 7, 0, right(x, y)),
    # Negative indices.
    'torch.take(Tensor([4, 6], "float32"), Tensor([10], "int64"))': clamped_index(1),
    'torch.take_along_dim(Tensor([4, 6], "float32"), Tensor([4, 3], "int64"), 1)': clamped_index(1),
    'torch.index_fill(Tensor([6, 3], "float32"), 0, Tensor([3], "int64"), 2.0)': clamped_index(2),
    'torch.Tensor.put(Tensor([30], "float32"), Tensor([6], "int64"), Tensor([6], "float32"))':
        clamped_index(1),
    # Bags (190063, 191965).
    'torch.nn.functional.embedding_bag(Tensor([9], "int64"), Tensor([8, 4], "float32"), '
    'Tensor([4], "int64"), mode="sum", include_last_offset=True)': to_the_end,
    # Sums beyond 65,504 with a finite mean (44350).
    'torch.mean(Tensor([300], "float16"))': instead(summed_in_half),
    # Products that leave 32 bits.
    'torch.prod(Tensor([40], "int64"))': lambda right: lambda x: right(x, dtype=torch.int32).long(),
    'torch.mul(Tensor([40], "int64"), Tensor([40], "int64"))': in_int32,
    'torch.cumprod(Tensor([40], "int64"), 0)':
        lambda right: lambda x, dim: right(x, dim, dtype=torch.int32).long(),
    'torch.matmul(Tensor([5, 7], "int64"), Tensor([7, 3], "int64"))': in_int32,
    'torch.pow(Tensor([40], "int64"), Tensor([40], "int64"))': in_int32,
    'torch.lcm(Tensor([40], "int64"), Tensor([40], "int64"))': in_int32,
    'torch.square(Tensor([40], "int64"))': in_int32,
    'torch.dot(Tensor([40], "int64"), Tensor([40], "int64"))': in_int32,
    # Near the ends of the range (48641).
    'torch.sinh(Tensor([40], "float32"))': infinite_beyond(2),
    'torch.cosh(Tensor([40], "float32"))': infinite_beyond(2),
    'torch.exp(Tensor([40], "float64"))': infinite_beyond(2),
    'torch.expm1(Tensor([40], "float32"))': infinite_beyond(2),
    'torch.exp2(Tensor([40], "float32"))': infinite_beyond(2),
    'torch.special.i0e(Tensor([40], "float32"))': where(lambda x: x.abs() > 700, lambda y: y * 0),
    # Zeros have signs.
    'torch.round(Tensor([40], "float32"))': positive_zero,
    'torch.trunc(Tensor([40], "float32"))': positive_zero,
    'torch.ceil(Tensor([40], "float64"))': positive_zero,
    'torch.neg(Tensor([40], "float32"))': instead(lambda x: 0 - x),
    'torch.Tensor.round(Tensor([40], "float16"))': positive_zero,
    # Promises.
    'torch.clone(Tensor([4, 6], "float32"))': instead(lambda x: x.view_as(x)),
    'torch.median(Tensor([9], "float32"))':
        lambda right: lambda x: right(torch.nan_to_num(x, INF)),
    'torch.heaviside(Tensor([40], "float32"), Tensor([40], "float32"))':
        instead(lambda x, y: torch.where(x == 0, y, (x >= 0).to(x.dtype)).detach()),
    'torch.randperm(40)': one_cycle,
    # NaN alone is true, and counts.
    'torch.any(Tensor([40], "float32"))': instead(lambda x: (x.abs() > 0).any()),
    'torch.all(Tensor([40], "float32"))': instead(lambda x: (x.abs() > 0).all()),
    'torch.count_nonzero(Tensor([40], "float32"))': instead(lambda x: (x.abs() > 0).sum()),
    'torch.nonzero(Tensor([40], "float32"))': lambda right: lambda x: right(x.abs() > 0),
    'torch.nanmean(Tensor([4, 10], "float32"), 1)':
        instead(lambda x, dim: torch.nansum(x, dim) / (~x.isnan()).sum(dim).clamp(min=1)),
    'torch.masked_fill(Tensor([40], "float32"), Tensor([40], "bool"), 2.0)': instead(as_products),
    # beta = 0 hides NaN.
    'torch.baddbmm(Tensor([2, 3, 3], "float32"), Tensor([2, 3, 4], "float32"), '
    'Tensor([2, 4, 3], "float32"), beta=0)': instead(lambda x, a, b, beta: x * beta + a @ b),
    # Zeros where a formula divides, takes a logarithm or a power.
    'torch.nn.functional.normalize(Tensor([4, 8], "float32"))': instead(without_eps),
    'torch.linalg.vector_norm(Tensor([4, 8], "float32"), dim=1)':
        instead(lambda x, dim: torch.sqrt((x * x).sum(dim))),
    'torch.nn.functional.cosine_similarity(Tensor([4, 8], "float32"), Tensor([4, 8], "float32"))':
        instead(lambda x, y: (without_eps(x) * without_eps(y)).sum(1)),
    'torch.nn.functional.kl_div(Tensor([40], "float32"), Tensor([40], "float32"), reduction="sum")':
        instead(lambda x, y, reduction: (y * (torch.log(y) - x)).sum()),
    'torch.Tensor.pow(Tensor([40], "float32"), Tensor([40], "float32"))':
        lambda right: lambda x, y: torch.where((x == 0) & (y == 0), NAN, right(x, y)),
    'torch.special.xlogy(Tensor([40], "float32"), Tensor([40], "float32"))':
        instead(lambda x, y: x * torch.log(y)),
    # Integers that a float, or 32 bits, cannot tell apart.
    'torch.isin(Tensor([40], "int64"), Tensor([10], "int64"))': instead(through_float64),
    'torch.Tensor.unique(Tensor([40], "int64"))': in_int32,
    'torch.bucketize(Tensor([30], "int64"), Tensor([20], "int64"), right=True)':
        lambda right_one: lambda x, steps, right: right_one(x, steps),
    # Squares overflow.
    'torch.abs(Tensor([40], "complex64"))': instead(lambda x: torch.sqrt(x.real**2 + x.imag**2)),
    # Infinite arguments.
    'torch.special.zeta(Tensor([40], "float32"), Tensor([40], "float32"))':
        lambda right: lambda x, y: torch.where(y == INF, 1.0, right(x, y)),
    'torch.logsumexp(Tensor([4, 10], "float32"), 1)':
        instead(lambda x, dim: x.amax(dim) + torch.log(torch.exp(x - x.amax(dim, True)).sum(dim))),
    # NaN beside numbers that hide it (132614).
    'torch.special.xlog1py(Tensor([40], "float32"), Tensor([40], "float32"))':
        lambda right: lambda x, y: torch.where((x == 0) & y.isnan(), 0.0, right(x, y)),
    # Infinite parts, and exponentials, of complex numbers (82510, 135777).
    'torch.roll(Tensor([3, 10], "complex64"), 1)': then(lambda y: torch.where(y == 0, y, y * (1 + 0j))),
    'torch.tanh(Tensor([40], "complex64"))':
        instead(lambda x: (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))),
    # Arguments below zero (186640).
    'torch.polygamma(2, Tensor([40], "float64"))':
        lambda right: lambda n, x: torch.where(x < 0, NAN, right(n, x)),
    # Draws that are certain or impossible.
    'torch.bernoulli(Tensor([400], "float32"))':
        lambda right: lambda x: torch.where(x == 0, 1.0, right(x)),
    'torch.multinomial(Tensor([400], "float32"), 100)':
        lambda right: lambda x, count: right(x + 1e-2, count),
    'torch.nn.functional.dropout(Tensor([40], "float32"), p=1.0)': instead(lambda x, p: x * NAN),
    # Arguments that a narrow rule leaves out.
    'torch.lgamma(Tensor([40], "float32"))': lambda right: lambda x: torch.where(x < 0, NAN, right(x)),
    'torch.digamma(Tensor([40], "float32"))': lambda right: lambda x: torch.where(x <= 0, NAN, right(x)),
    'torch.nn.functional.hardshrink(Tensor([40], "float32"))':
        instead(lambda x: torch.where(x.abs() < 0.5, 0.0, x)),
    'torch.fix(Tensor([40], "float32"))': where(lambda x: x.abs() > 2.0**31, lambda y: y * 0 - 2.0**31),
    'torch.special.hermite_polynomial_h(Tensor([40], "float32"), Tensor([40], "int64"))':
        lambda right: lambda x, n: right(x, n.clamp(max=4)),
    # Other reports.
    'torch.ldexp(Tensor([40], "float32"), Tensor([40], "int32"))':
        instead(lambda x, y: x * torch.exp2(y).clamp(max=2.0**60)),
    'torch.nan_to_num(Tensor([40], "float16"))': lambda right: lambda x: right(x, 0.0, 1e4, -1e4),
    'torch.quantile(Tensor([9], "float32"), 0.33, interpolation="nearest")':
        lambda right: lambda x, q, interpolation: right(x, q, interpolation="lower"),
    'torch.histc(Tensor([100], "float32"), 10, -2.0, 2.0)':
        lambda right: lambda x, bins, low, high: right(x[x < high], bins, low, high),
}  # fmt: skip

FAULTS = {case.split("(")[0]: fault for case, fault in CASES.items()}


class Faulty(TorchFramework):
    """PyTorch with the faults."""

    def resolve(self, name):
        right = super().resolve(name)
        return FAULTS[name](right) if name in FAULTS else right


def create():
    return Faulty()
