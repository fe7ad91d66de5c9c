"""Activations of paddle.nn.functional."""

from assay import draw_distribution, gumbel
from assay.arguments import as_dtype, as_int
from assay.known_deviation import avoids, follows
from assay.reference import on_cpu, torch
from assay.registry import api, same
from assay.rules import distinct, integers, uniform
from assay.shorthand import RANDOM, edges, spread

FUNCTIONAL = "paddle.nn.functional.{}"
FUNCTIONAL_IN_PLACE = "paddle.nn.functional.{}_"
# Beyond most knees. Both lanes compare the input's bits with the knee, so the branch cannot differ.
WIDE = uniform(-4, 4)
LAST = integers(-1, 0)  # for an axis that is a tensor
PLAIN = {"near_one": 0.0}  # small results have full relative precision
SLOPES = {"near_one": 0.0, "near_one_back": 2.0}  # … but not their gradients, such as 1 - tanh²
# Accurate to an ulp of 1, and to some ulps of 1 in gradients, such as silu's 1 + x (1 - s).
CAREFUL = {"near_one": 1.0, "near_one_back": 2.0}
# A softmax adds up a row. `near_one` excuses Paddle's least share, e^-64 of the largest one.
SHARES = {"sums": True, "in_float32": True, "near_one": 2.0**-20, "near_one_back": 2.0}
# The usual values are integers, which avoid the knees.
BEYOND = edges("x", without="exact")


def functional(stems, *forms, to="", x=WIDE, traits=None):
    """Activations with one tensor argument that torch.nn.functional has too."""
    names = spread(stems, *forms)
    same("x, name=None, *, out=None", *names, home="torch.nn.functional", to=to, x=x, traits=traits)


functional("relu", FUNCTIONAL, FUNCTIONAL_IN_PLACE, traits=PLAIN)
functional("tanh", FUNCTIONAL, FUNCTIONAL_IN_PLACE, traits=SLOPES)
functional("softsign", FUNCTIONAL, traits=SLOPES)
functional("tanhshrink", FUNCTIONAL, traits=CAREFUL)
functional("sigmoid", FUNCTIONAL, traits={"direct": True})
functional("relu6", FUNCTIONAL, x=uniform(-8, 8), traits=PLAIN)
functional("log_sigmoid logsigmoid", FUNCTIONAL, to="torch.nn.functional.logsigmoid", traits=CAREFUL)
functional("swish", FUNCTIONAL, to="torch.nn.functional.silu", traits=CAREFUL)


# Integers, because the knees are where the rounded x ± 3 is 0 or 6.
@api("paddle.nn.functional.hardswish", x=integers(-5, 6), traits=SLOPES, regimes=BEYOND)
def hardswish(x, name=None, *, out=None):
    """PyTorch's GPU kernel uses a sixth in single precision, also for float64; the CPU computes that case."""
    plain = torch.nn.functional.hardswish
    return on_cpu(plain, x) if x.is_cuda and x.dtype == torch.float64 else plain(x)


# The result is x times a difference from 1, down to x = -38. The gradient contains x (1 - tanh²) for x up to
# 8.7, so a tanh that is 2 ulps off, as CUDA's may be, causes an error of 17 ulps of 1; 18 are accepted.
# PyTorch's float32 is 8 ulps off at 8.7, which would excuse four times as much in the test lane.
@api("paddle.nn.functional.mish", x=WIDE, traits={"near_one": 4.0, "near_one_back": 3.0})
def mish(x, name=None):
    return torch.nn.functional.mish(x.double()).to(x.dtype)


@api("paddle.nn.functional.silu", x=WIDE, traits=CAREFUL)
def silu(x, inplace=False, name=None):
    return torch.nn.functional.silu(x)


def in_dtype(function, x, axis, dtype):
    """The function in `dtype`; half precision is summed in float32."""
    dtype = as_dtype(dtype) or x.dtype
    half = dtype in (torch.float16, torch.bfloat16)
    return function(x.to(dtype), as_int(axis), dtype=torch.float32 if half else dtype).to(dtype)


def peaked(this, axis=-1):
    """Spread so wide that the largest element of a row dominates. Otherwise all shares of a long row are
    below the absolute tolerance."""
    length = this.shape[axis] if this.shape and isinstance(axis, int) else 1
    reach = min(max(4, 0.35 * length), 300)
    return uniform(-reach, reach)


@api(*spread("softmax", FUNCTIONAL, FUNCTIONAL_IN_PLACE), x=peaked, axis=LAST, traits=SHARES)
def softmax(x, axis=-1, dtype=None, name=None, *, out=None):
    return in_dtype(torch.softmax, x, axis, dtype)


@api(
    *("paddle.Tensor.softmax", "paddle.softmax", "paddle.special.softmax"),
    "paddle.compat.nn.functional.softmax",
    input=WIDE,
    traits=SHARES,
)
def softmax_of_pytorch(input, dim=None, dtype=None, *, out=None):
    """PyTorch's signature, with its default axis."""
    return in_dtype(torch.softmax, input, int(input.ndim not in (0, 1, 3)) if dim is None else dim, dtype)


@api("paddle.nn.functional.log_softmax", x=WIDE, axis=LAST, traits={"sums": True})
def log_softmax(x, axis=-1, dtype=None, name=None):
    return in_dtype(torch.log_softmax, x, axis, dtype)


@api("paddle.nn.functional.gelu", x=WIDE, undefined={"infinity": "the formula is -inf * 0 at -inf"})
def gelu(x, approximate=False, name=None):
    return torch.nn.functional.gelu(x, approximate="tanh" if approximate in (True, "tanh") else "none")


@api(
    *spread("leaky_relu", FUNCTIONAL, FUNCTIONAL_IN_PLACE),
    known_deviation=follows("the gradient at 0 is 1; PyTorch uses the negative slope"),
    traits=PLAIN,
)
def leaky_relu(x, negative_slope=0.01, name=None):
    return torch.where(x >= 0, x, negative_slope * x)


@api("paddle.nn.functional.prelu", traits=PLAIN)
def prelu(x, weight, data_format="NCHW", name=None):
    """PyTorch has channels on the second axis only."""
    if data_format.startswith("NC") or weight.numel() == 1:
        return torch.prelu(x, weight.reshape(-1))
    return torch.prelu(x.movedim(-1, 1), weight).movedim(1, -1)


@api(*spread("elu", FUNCTIONAL, FUNCTIONAL_IN_PLACE), x=WIDE, traits=CAREFUL)
def elu(x, alpha=1.0, name=None):
    return torch.nn.functional.elu(x, alpha)


same("x, alpha=1.0, name=None", "paddle.nn.functional.celu", x=WIDE, traits=CAREFUL)


@api("paddle.nn.functional.selu", x=WIDE, traits=CAREFUL)
def selu(x, scale=1.0507009873554805, alpha=1.6732632423543772, name=None):
    return scale * torch.where(x > 0, x, alpha * torch.expm1(x.clamp(max=0)))


# With a low threshold the result jumps where the rounded beta · x exceeds it.
@api("paddle.nn.functional.softplus", x=lambda threshold=20: WIDE if threshold >= 5 else integers(-5, 6))
def softplus(x, beta=1, threshold=20, name=None):
    return torch.nn.functional.softplus(x, beta, threshold)


def between(x, low, high):
    """A clamp whose gradient is 0 on the bounds too."""
    return torch.where((x > low) & (x < high), x, x.detach().clamp(low, high))


@api(*spread("hardtanh", FUNCTIONAL, FUNCTIONAL_IN_PLACE), x=WIDE, traits=PLAIN)
def hardtanh(x, min=-1.0, max=1.0, name=None):
    """PyTorch's function rejects bounds in the wrong order."""
    return between(x, min, max)


# Integers, because the knees are where the rounded slope · x + offset is 0 or 1.
@api("paddle.nn.functional.hardsigmoid", x=integers(-5, 6), traits=PLAIN, regimes=BEYOND)
def hardsigmoid(x, slope=0.1666667, offset=0.5, name=None):
    return between(slope * x + offset, 0, 1)


same(
    "x, threshold=1.0, value=0.0, name=None",
    *spread("thresholded_relu", FUNCTIONAL, FUNCTIONAL_IN_PLACE),
    to="torch.nn.functional.threshold",
    x=uniform(lambda threshold=1.0: threshold - 2, lambda threshold=1.0: threshold + 2),
    traits=PLAIN,
)


@api("paddle.nn.functional.softshrink", x=WIDE, traits=PLAIN)
def softshrink(x, threshold=0.5, name=None):
    return torch.nn.functional.softshrink(x, threshold)


same(
    "x, threshold=0.5, name=None",
    "paddle.nn.functional.hardshrink",
    home="torch.nn.functional",
    x=lambda threshold=0.5: integers(-4, 5) if threshold % 1 else WIDE,
    known_deviation=avoids(
        "inputs never equal the threshold; Paddle lets the threshold pass",
        "paddle-hardshrink-threshold",
    ),
)


@api(
    "paddle.nn.functional.maxout",
    x=distinct(-2, 2),
    traits=PLAIN,
    undefined={"nan": "the documentation does not say whether a maximum over NaN is NaN"},
)
def maxout(x, groups, axis=1, name=None):
    axis %= x.ndim
    return x.unflatten(axis, (-1, groups)).max(axis + 1).values


same("x, axis=-1, name=None", "paddle.nn.functional.glu", home="torch.nn.functional", x=WIDE)


@api("paddle.incubate.nn.functional.swiglu", "paddle.nn.functional.swiglu", x=WIDE, y=WIDE)
def swiglu(x, y=None, name=None):
    if y is None:
        x, y = x.chunk(2, -1)
    return torch.nn.functional.silu(x) * y


# Negative inputs in training, where slopes are random, so that every element is random.
@api("paddle.nn.functional.rrelu", x=lambda training=True: uniform(-1, -0.1) if training else None)
def rrelu(x, lower=0.125, upper=0.3333333333333333, training=True, name=None):
    if not training or upper - lower < 1e-6:
        return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)
    return draw_distribution.uniform_draw(x * upper, x * lower, x.shape, x.dtype)


def _drawn(found, given):
    keywords = {"temperature": 1.0, "hard": False, "axis": -1}
    return gumbel.shown(given["x"], found, *({**keywords, **given}[name] for name in keywords))


@api("paddle.nn.functional.gumbel_softmax", x=uniform(-2, 2), grad=RANDOM, shown=_drawn)
def gumbel_softmax(x, temperature=1.0, hard=False, axis=-1, name=None):
    return gumbel.promised(x, temperature, hard, axis)
