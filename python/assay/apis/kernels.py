"""Operators of paddle._C_ops without a public function of the same meaning: optimizer steps, gradients, …"""

import inspect

from assay import draw_distribution
from assay.apis.activation import swiglu as swiglu_of
from assay.arguments import as_dtype, as_ints, widened
from assay.operators import name_of, taking
from assay.reference import torch
from assay.registry import api
from assay.rules import constant, positive, uniform
from assay.shorthand import FROM_SHAPES, NO_BACKWARD, RANDOM

_OF_STEPS = "the operator is itself an optimizer step or a derivative"

# -- optimizer steps: the parameter is the result, and its state is compared as well --

_RULES = {
    "learning_rate": positive(0.01, 0.5), "skip_update": constant(0), "beta1_pow": uniform(0.3, 0.9),
    "beta2_pow": uniform(0.3, 0.95), "moment2": positive(0.1, 1.1), "moment2_max": positive(0.1, 1.1),
    "avg_squared_grad": positive(0.1, 1.1), "avg_squared_update": positive(0.1, 1.1),
    "mean_square": positive(0.4, 1.1), "inf_norm": positive(0.1, 1.1),
}  # fmt: skip
_SHARED = ("param", "grad", "master_param", "skip_update")  # what every step reads
_SINGLE = {"skip_update", "lazy_mode", "min_row_size_to_use_multithread"}  # absent for lists of parameters


def _averaged(old, new, share):
    """Moves an exponential moving average, in which the old value has the weight `share`."""
    return old.copy_(share * old + (1 - share) * new)


def step(name, parameters, state, merged=False, rules=None, scalars=()):
    """Registers the operator of one optimizer step, and with `merged` the one for lists of parameters.

    The decorated function takes the value and the gradient, in at least float32, and the other arguments that
    it names. It changes the state and returns the new value. A master copy keeps the value in float32; the
    parameter is rounded from it. `scalars` are numbers of the parameter's dtype; all others are float32.
    """

    def register(update):
        named = list(inspect.signature(update).parameters)[2:]

        def one(given):
            param, master, skip = given["param"], given["master_param"], given.get("skip_update")
            if skip is not None and bool(skip):
                return param.clone()
            value = widened(param) if master is None else master
            others = [given[each] if each in scalars else _declared(given[each]) for each in named]
            new = update(value, widened(given["grad"]).to(value.dtype), *others).reshape(value.shape)
            if master is not None:
                master.copy_(new)
            return new.to(param.dtype)

        def each_of(given):
            return [
                one({key: _row(value, row) for key, value in given.items()})
                for row in range(len(given["param"]))
            ]

        for form, function in [(name, one), (f"merged_{name}", each_of)][: 1 + merged]:
            own = [each for each in parameters.split(", ") if form == name or each not in _SINGLE]
            known = {each: rule for each, rule in (_RULES | (rules or {})).items() if each in own}
            updates = (*state.split(), "master_param")
            options = {"changes": "param", "updates": updates, "grad": _OF_STEPS, "rules": known}
            api(name_of(form), **options)(taking(own, (*named, *_SHARED), function))
        return update

    return register


def _declared(value):
    """The argument as ops.yaml declares it: a number is a float32."""
    return torch.tensor(value, dtype=torch.float32).item() if isinstance(value, float) else value


def _row(value, row):
    """The argument of one of several parameters. One entry is for all, and an empty list stands for none."""
    if not isinstance(value, list | tuple):
        return value
    return value[row if len(value) > 1 else 0] if value else None


@step("sgd_", "param, learning_rate, grad, master_param, multi_precision", "")
def _sgd(value, grad, learning_rate):
    return value - learning_rate * grad


@step(
    "momentum_",
    "param, grad, velocity, learning_rate, master_param, mu, use_nesterov, regularization_method, "
    "regularization_coeff, multi_precision, rescale_grad",
    "velocity",
    merged=True,
)
def _momentum(
    value, grad, velocity, learning_rate, mu, use_nesterov, regularization_method, regularization_coeff,
    rescale_grad,
):  # fmt: skip
    grad = grad * rescale_grad
    if regularization_method == "l2_decay":
        grad = grad + regularization_coeff * value
    velocity.copy_(mu * velocity + grad)
    return value - learning_rate * (grad + mu * velocity if use_nesterov else velocity)


_ADAM = "param, grad, learning_rate, moment1, moment2, moment2_max, beta1_pow, beta2_pow, master_param"
_ADAM_STATE = "moment1 moment2 moment2_max beta1_pow beta2_pow"
_BETAS = ("beta1", "beta2", "epsilon")
_THREADS = "lazy_mode, min_row_size_to_use_multithread"
_ADAM_END = "multi_precision, use_global_beta_pow, amsgrad"


@step(
    "adam_",
    f"{_ADAM}, skip_update, beta1, beta2, epsilon, {_THREADS}, {_ADAM_END}",
    _ADAM_STATE,
    merged=True,
    scalars=_BETAS,
)
def _adam(
    value, grad, learning_rate, moment1, moment2, moment2_max, beta1_pow, beta2_pow, beta1, beta2, epsilon,
    use_global_beta_pow, amsgrad,
):  # fmt: skip
    """The powers of the betas are those of this step; the operator hands back those of the next."""
    mean, squares = _averaged(moment1, grad, beta1), _averaged(moment2, grad * grad, beta2)
    if amsgrad:
        squares = moment2_max.copy_(torch.maximum(squares, moment2_max))
    root = torch.sqrt(squares / (1 - beta2_pow))
    new = value - learning_rate * mean / (1 - beta1_pow) / (root + epsilon)
    if not use_global_beta_pow:
        beta1_pow.mul_(beta1)
        beta2_pow.mul_(beta2)
    return new


@step(
    "adamw_",
    f"{_ADAM}, skip_update, beta1, beta2, epsilon, lr_ratio, coeff, with_decay, {_THREADS}, {_ADAM_END}",
    _ADAM_STATE,
    scalars=_BETAS,
)
def _adamw(
    value, grad, learning_rate, moment1, moment2, moment2_max, beta1_pow, beta2_pow, beta1, beta2, epsilon,
    lr_ratio, coeff, with_decay, use_global_beta_pow, amsgrad,
):  # fmt: skip
    """Decays the value by the rate and the coefficient, then makes a step of Adam."""
    rate = learning_rate * lr_ratio
    decayed = value * (1 - rate * coeff) if with_decay else value
    return _adam(
        decayed, grad, rate, moment1, moment2, moment2_max, beta1_pow, beta2_pow, beta1, beta2, epsilon,
        use_global_beta_pow, amsgrad,
    )  # fmt: skip


@step(
    "adamax_",
    "param, grad, learning_rate, moment, inf_norm, beta1_pow, master_param, beta1, beta2, epsilon, "
    "multi_precision",
    "moment inf_norm",
)
def _adamax(value, grad, learning_rate, moment, inf_norm, beta1_pow, beta1, beta2, epsilon):
    mean = _averaged(moment, grad, beta1)
    inf_norm.copy_(torch.maximum(grad.abs(), beta2 * inf_norm + epsilon))
    return value - learning_rate / (1 - beta1_pow) * mean / inf_norm


@step(
    "adagrad_",
    "param, grad, moment, learning_rate, master_param, epsilon, multi_precision",
    "moment",
    rules={"moment": positive(0.1, 1.1)},
)
def _adagrad(value, grad, moment, learning_rate, epsilon):
    moment.copy_(moment + grad * grad)
    return value - learning_rate * grad / (moment.sqrt() + epsilon)


@step(
    "adadelta_",
    "param, grad, avg_squared_grad, avg_squared_update, learning_rate, master_param, rho, epsilon, "
    "multi_precision",
    "avg_squared_grad avg_squared_update",
)
def _adadelta(value, grad, avg_squared_grad, avg_squared_update, learning_rate, rho, epsilon):
    squares = _averaged(avg_squared_grad, grad * grad, rho)
    change = torch.sqrt((avg_squared_update + epsilon) / (squares + epsilon)) * grad
    _averaged(avg_squared_update, change * change, rho)
    return value - learning_rate * change


@step(
    "rmsprop_",
    "param, mean_square, grad, moment, learning_rate, mean_grad, master_param, epsilon, decay, momentum, "
    "centered, multi_precision",
    "mean_square moment mean_grad",
)
def _rmsprop(value, grad, mean_square, moment, learning_rate, mean_grad, epsilon, decay, momentum, centered):
    spread = _averaged(mean_square, grad * grad, decay)
    if centered:
        spread = spread - _averaged(mean_grad, grad, decay) ** 2
    change = learning_rate * grad / torch.sqrt(spread + epsilon)
    moment.copy_(momentum * moment + change.reshape(moment.shape))
    return value - moment


# -- fills and draws --


@api(name_of("full_"), grad=FROM_SHAPES)
def full_(output, shape, value, dtype, place):
    return torch.full(as_ints(shape), value, dtype=as_dtype(dtype))


@api(name_of("gaussian"), grad=RANDOM)
def gaussian(shape, mean, std, seed, dtype, place):
    return draw_distribution.normal_draw(mean, std, as_ints(shape), as_dtype(dtype))


# -- reductions, positions, products --


@api(name_of("squared_l2_norm"))
def squared_l2_norm(x):
    return widened(x).square().sum().to(x.dtype).reshape(1)


@api(name_of("clip_by_norm"), grad=NO_BACKWARD)
def clip_by_norm(x, max_norm):
    norm = widened(x).square().sum().sqrt()
    return (widened(x) * (max_norm / torch.clamp(norm, min=max_norm))).to(x.dtype)


@api(name_of("fused_linear_param_grad_add"), grad=_OF_STEPS)
def fused_linear_param_grad_add(x, dout, dweight, dbias, multi_precision, has_bias):
    """The gradients of a linear layer's weight and bias, added to those of earlier batches. With
    multi_precision they are in float32."""
    rows, upstream = widened(x).flatten(0, -2), widened(dout).flatten(0, -2)
    dtype = torch.promote_types(x.dtype, torch.float32) if multi_precision else x.dtype
    found = []
    for given, new in ((dweight, rows.mT @ upstream), (dbias, upstream.sum(0) if has_bias else None)):
        if new is not None:
            new = (new if given is None else widened(given) + new).to(dtype if given is None else given.dtype)
        found.append(new)
    return tuple(found)


# -- gradients: of the function of the same name, by its own derivative --


def _derivative(function, inputs, upstream):
    """The gradients of function(*inputs); an absent input has none."""
    leaves = [each if each is None else each.detach().requires_grad_() for each in inputs]
    given = [each for each in leaves if each is not None]
    with torch.enable_grad():
        found = iter(torch.autograd.grad(function(*leaves), given, upstream))
    return tuple(None if each is None else next(found) for each in leaves)


@api(name_of("matmul_grad"), grad=_OF_STEPS)
def matmul_grad(x, y, out_grad, transpose_x, transpose_y):
    def product(x, y):
        x = x.mT if transpose_x and x.ndim > 1 else x
        return x @ (y.mT if transpose_y and y.ndim > 1 else y)

    return _derivative(product, (x, y), out_grad)


@api(name_of("swiglu_grad"), grad=_OF_STEPS)
def swiglu_grad(x, y, out_grad):
    return _derivative(swiglu_of, (x, y), out_grad)
