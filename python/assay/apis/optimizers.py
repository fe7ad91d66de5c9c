"""Optimizers: the value of a parameter after several steps with multiples of one gradient (assay.layers)."""

import inspect
import math

from assay.ignored import INERT
from assay.layers import OPTIMIZER, STEPS, Made
from assay.reference import torch
from assay.registry import layer, signature_of


def optimizer(name, signature):
    """Registers paddle.optimizer.NAME, whose constructor has this signature.

    The decorated function makes one step. It takes the parameter's value, the gradient, a dict that keeps the
    state between steps, the number of the step from 1 on, and the constructor's options that it names. It
    returns the new value. `weight_decay` is added to the gradient as L2 regularisation, unless the function
    names it.
    """
    constructor = signature_of(signature)

    def register(update):
        named = tuple(inspect.signature(update).parameters)[4:]

        def make(*args, **kwargs):
            bound = constructor.bind(*args, **kwargs)
            bound.apply_defaults()
            options = {option: bound.arguments[option] for option in named}
            decay = None if "weight_decay" in named else bound.arguments.get("weight_decay")

            def call(value, gradient):
                state = {}
                for step, factor in enumerate(STEPS, 1):
                    whole = gradient * factor if decay is None else gradient * factor + decay * value
                    value = update(value, whole, state, step, **options)
                return value.detach()

            return Made(call)

        make.__signature__ = constructor
        make.reads = (*named, "weight_decay")
        missing = [option for option in constructor.parameters if option not in (*make.reads, *INERT)]
        registered = layer(
            f"paddle.optimizer.{name}",
            inputs="parameter gradient",
            kind=OPTIMIZER,
            grad="optimizer steps are not differentiated",
            ignores=dict.fromkeys(missing, "its steps lack this option"),
        )
        return registered(make)

    return register


def _average(state, name, new, share):
    """An exponential moving average that starts at zero; `share` is the weight of the old value."""
    state[name] = share * state.get(name, torch.zeros_like(new)) + (1 - share) * new
    return state[name]


def _adam(state, gradient, step, beta1, beta2, amsgrad=False):
    """The bias-corrected mean of the gradient, and the root of the bias-corrected mean of its square."""
    mean = _average(state, "mean", gradient, beta1)
    squares = _average(state, "squares", gradient**2, beta2)
    if amsgrad:
        squares = state["largest"] = torch.maximum(squares, state.get("largest", torch.zeros_like(squares)))
    return mean / (1 - beta1**step), torch.sqrt(squares / (1 - beta2**step))


# Parts of the signatures.
_BETAS = "learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08"
_DECAY = "parameters=None, weight_decay=None, grad_clip=None"


@optimizer("SGD", f"learning_rate=0.001, {_DECAY}, multi_precision=False, name=None")
def sgd(value, gradient, state, step, learning_rate):
    return value - learning_rate * gradient


@optimizer(
    "Momentum",
    "learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None, "
    "grad_clip=None, multi_precision=False, rescale_grad=1.0, use_multi_tensor=False, name=None",
)
def momentum_(value, gradient, state, step, learning_rate, momentum, use_nesterov, rescale_grad):
    gradient = rescale_grad * gradient
    velocity = state["velocity"] = momentum * state.get("velocity", 0) + gradient
    return value - learning_rate * (gradient + momentum * velocity if use_nesterov else velocity)


@optimizer("Adagrad", f"learning_rate, epsilon=1e-06, {_DECAY}, name=None, initial_accumulator_value=0.0")
def adagrad(value, gradient, state, step, learning_rate, epsilon, initial_accumulator_value):
    squares = state["squares"] = state.get("squares", initial_accumulator_value) + gradient**2
    return value - learning_rate * gradient / (squares.sqrt() + epsilon)


@optimizer("Adadelta", f"learning_rate=0.001, epsilon=1e-06, rho=0.95, {_DECAY}, name=None")
def adadelta(value, gradient, state, step, learning_rate, epsilon, rho):
    squares = _average(state, "squares", gradient**2, rho)
    moved = state.get("moved", torch.zeros_like(value))
    change = -torch.sqrt((moved + epsilon) / (squares + epsilon)) * gradient
    _average(state, "moved", change**2, rho)
    return value + learning_rate * change


@optimizer(
    "RMSProp", f"learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, {_DECAY}, name=None"
)
def rmsprop(value, gradient, state, step, learning_rate, rho, epsilon, momentum, centered):
    spread = _average(state, "squares", gradient**2, rho)
    if centered:
        spread = spread - _average(state, "mean", gradient, rho) ** 2
    change = learning_rate * gradient / torch.sqrt(spread + epsilon)
    state["velocity"] = momentum * state.get("velocity", 0) + change
    return value - state["velocity"]


@optimizer(
    "Adam",
    f"{_BETAS}, {_DECAY}, lazy_mode=False, multi_precision=False, use_multi_tensor=False, amsgrad=False, "
    "name=None",
)
def adam(value, gradient, state, step, learning_rate, beta1, beta2, epsilon, amsgrad):
    mean, root = _adam(state, gradient, step, beta1, beta2, amsgrad)
    return value - learning_rate * mean / (root + epsilon)


@optimizer(
    "AdamW",
    f"{_BETAS}, parameters=None, weight_decay=0.01, use_lowprecision_moment=False, lr_ratio=None, "
    "apply_decay_param_fun=None, grad_clip=None, lazy_mode=False, multi_precision=False, amsgrad=False, "
    "name=None",
)
def adamw(value, gradient, state, step, learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad):
    mean, root = _adam(state, gradient, step, beta1, beta2, amsgrad)
    return value * (1 - learning_rate * weight_decay) - learning_rate * mean / (root + epsilon)


@optimizer("Adamax", f"{_BETAS}, {_DECAY}, name=None")
def adamax(value, gradient, state, step, learning_rate, beta1, beta2, epsilon):
    mean = _average(state, "mean", gradient, beta1)
    old = state.get("largest", torch.zeros_like(value))
    largest = state["largest"] = torch.maximum(beta2 * old + epsilon, gradient.abs())
    return value - learning_rate / (1 - beta1**step) * mean / largest


@optimizer(
    "NAdam",
    f"learning_rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-08, momentum_decay=0.004, {_DECAY}, name=None",
)
def nadam(value, gradient, state, step, learning_rate, beta1, beta2, epsilon, momentum_decay):
    now, then = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    product = state["product"] = state.get("product", 1.0) * now
    mean = _average(state, "mean", gradient, beta1)
    root = torch.sqrt(_average(state, "squares", gradient**2, beta2) / (1 - beta2**step)) + epsilon
    ahead = then * mean / (1 - product * then) + (1 - now) * gradient / (1 - product)
    return value - learning_rate * ahead / root


@optimizer("RAdam", f"{_BETAS}, {_DECAY}, name=None")
def radam(value, gradient, state, step, learning_rate, beta1, beta2, epsilon):
    longest = 2 / (1 - beta2) - 1
    mean, root = _adam(state, gradient, step, beta1, beta2)
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5:
        return value - learning_rate * mean
    above = (length - 4) * (length - 2) * longest
    below = (longest - 4) * (longest - 2) * length
    return value - learning_rate * mean * math.sqrt(above / below) / (root + epsilon)


@optimizer(
    "Lamb",
    "learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06, parameters=None, "
    "grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False, always_adapt=False, name=None",
)
def lamb(value, gradient, state, step, learning_rate, lamb_weight_decay, beta1, beta2, epsilon, always_adapt):
    mean, root = _adam(state, gradient, step, beta1, beta2)
    change = mean / (root + epsilon) + lamb_weight_decay * value
    norms = torch.linalg.vector_norm(value), torch.linalg.vector_norm(change)
    adapted = all(norm > 0 for norm in norms) and (lamb_weight_decay > 0 or always_adapt)
    return value - learning_rate * (norms[0] / norms[1] if adapted else 1) * change


@optimizer(
    "Rprop",
    "learning_rate=0.001, learning_rate_range=(1e-05, 50), parameters=None, etas=(0.5, 1.2), grad_clip=None, "
    "multi_precision=False, name=None",
)
def rprop(value, gradient, state, step, learning_rate, learning_rate_range, etas):
    """Uses the sign of the gradient. The step of an element grows while its sign stays the same."""
    same = gradient * state.get("before", torch.zeros_like(gradient))
    rate = state.get("rate", torch.full_like(value, learning_rate))
    factor = torch.where(same > 0, etas[1], torch.where(same < 0, etas[0], 1.0))
    rate = state["rate"] = (rate * factor).clamp(*learning_rate_range)
    gradient = state["before"] = torch.where(same < 0, 0, gradient)
    return value - rate * torch.sign(gradient)


@optimizer("ASGD", f"learning_rate=0.001, batch_num=1, {_DECAY}, multi_precision=False, name=None")
def asgd(value, gradient, state, step, learning_rate, batch_num):
    """Uses the average of the gradients of the last `batch_num` steps."""
    last = state.setdefault("last", [])
    last.append(gradient)
    del last[:-batch_num]
    return value - learning_rate * sum(last) / len(last)
