"""Optimizers: a parameter after some steps with multiples of one gradient. `weight_decay`, where it is a
number, adds so much of the parameter to its gradient, but for AdamW and Lamb, which shrink the parameter."""

import math

from assay.layers import OPTIMIZER, STEPS, Made
from assay.reference import torch
from assay.registry import layer


def _stepped(update, decay=None):
    """What `update(value, gradient, state, step)` makes of a parameter in STEPS; `state` is a dict."""

    def call(value, gradient):
        state = {}
        for step, factor in enumerate(STEPS, 1):
            whole = gradient * factor if decay is None else gradient * factor + decay * value
            value = update(value, whole, state, step)
        return value.detach()

    return Made(call)


def optimizer(name):
    return layer(f"paddle.optimizer.{name}", inputs="parameter gradient", kind=OPTIMIZER, grad=False)


def _average(state, name, new, share):
    """A running average, from zero; `share` is what stays of the old."""
    state[name] = share * state.get(name, torch.zeros_like(new)) + (1 - share) * new
    return state[name]


@optimizer("SGD")
def sgd(
    learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None, multi_precision=False, name=None
):
    return _stepped(lambda value, gradient, state, step: value - learning_rate * gradient, weight_decay)


@optimizer("Momentum")
def momentum_(
    learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None, grad_clip=None,
    multi_precision=False, rescale_grad=1.0, use_multi_tensor=False, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        gradient = rescale_grad * gradient
        velocity = state["velocity"] = momentum * state.get("velocity", 0) + gradient
        return value - learning_rate * (gradient + momentum * velocity if use_nesterov else velocity)

    return _stepped(update, weight_decay)


@optimizer("Adagrad")
def adagrad(
    learning_rate, epsilon=1e-06, parameters=None, weight_decay=None, grad_clip=None, name=None,
    initial_accumulator_value=0.0,
):  # fmt: skip
    def update(value, gradient, state, step):
        squares = state["squares"] = state.get("squares", initial_accumulator_value) + gradient**2
        return value - learning_rate * gradient / (squares.sqrt() + epsilon)

    return _stepped(update, weight_decay)


@optimizer("Adadelta")
def adadelta(
    learning_rate=0.001, epsilon=1e-06, rho=0.95, parameters=None, weight_decay=None, grad_clip=None,
    name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        squares = _average(state, "squares", gradient**2, rho)
        moved = state.get("moved", torch.zeros_like(value))
        change = -torch.sqrt((moved + epsilon) / (squares + epsilon)) * gradient
        _average(state, "moved", change**2, rho)
        return value + learning_rate * change

    return _stepped(update, weight_decay)


@optimizer("RMSProp")
def rmsprop(
    learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, parameters=None, weight_decay=None,
    grad_clip=None, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        spread = _average(state, "squares", gradient**2, rho)
        if centered:
            spread = spread - _average(state, "mean", gradient, rho) ** 2
        change = learning_rate * gradient / torch.sqrt(spread + epsilon)
        state["velocity"] = momentum * state.get("velocity", 0) + change
        return value - state["velocity"]

    return _stepped(update, weight_decay)


def _adam(state, gradient, step, beta1, beta2, amsgrad=False):
    """Mean of the gradient and root of the mean of its squares, both freed of their start at zero."""
    mean = _average(state, "mean", gradient, beta1)
    squares = _average(state, "squares", gradient**2, beta2)
    if amsgrad:
        squares = state["largest"] = torch.maximum(squares, state.get("largest", torch.zeros_like(squares)))
    return mean / (1 - beta1**step), torch.sqrt(squares / (1 - beta2**step))


@optimizer("Adam")
def adam(
    learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None, weight_decay=None,
    grad_clip=None, lazy_mode=False, multi_precision=False, use_multi_tensor=False, amsgrad=False, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        mean, root = _adam(state, gradient, step, beta1, beta2, amsgrad)
        return value - learning_rate * mean / (root + epsilon)

    return _stepped(update, weight_decay)


@optimizer("AdamW")
def adamw(
    learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None, weight_decay=0.01,
    use_lowprecision_moment=False, lr_ratio=None, apply_decay_param_fun=None, grad_clip=None, lazy_mode=False,
    multi_precision=False, amsgrad=False, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        mean, root = _adam(state, gradient, step, beta1, beta2, amsgrad)
        return value * (1 - learning_rate * weight_decay) - learning_rate * mean / (root + epsilon)

    return _stepped(update)


@optimizer("Adamax")
def adamax(
    learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None, weight_decay=None,
    grad_clip=None, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        mean = _average(state, "mean", gradient, beta1)
        old = state.get("largest", torch.zeros_like(value))
        largest = state["largest"] = torch.maximum(beta2 * old + epsilon, gradient.abs())
        return value - learning_rate / (1 - beta1**step) * mean / largest

    return _stepped(update, weight_decay)


@optimizer("NAdam")
def nadam(
    learning_rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-08, momentum_decay=0.004, parameters=None,
    weight_decay=None, grad_clip=None, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
        product = state["product"] = state.get("product", 1.0) * now
        mean = _average(state, "mean", gradient, beta1)
        root = torch.sqrt(_average(state, "squares", gradient**2, beta2) / (1 - beta2**step)) + epsilon
        ahead = then * mean / (1 - product * then) + (1 - now) * gradient / (1 - product)
        return value - learning_rate * ahead / root

    return _stepped(update, weight_decay)


@optimizer("RAdam")
def radam(
    learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None, weight_decay=None,
    grad_clip=None, name=None,
):  # fmt: skip
    longest = 2 / (1 - beta2) - 1

    def update(value, gradient, state, step):
        mean, root = _adam(state, gradient, step, beta1, beta2)
        length = longest - 2 * step * beta2**step / (1 - beta2**step)
        if length <= 5:
            return value - learning_rate * mean
        above = (length - 4) * (length - 2) * longest
        below = (longest - 4) * (longest - 2) * length
        return value - learning_rate * mean * math.sqrt(above / below) / (root + epsilon)

    return _stepped(update, weight_decay)


@optimizer("Lamb")
def lamb(
    learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06, parameters=None,
    grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False, always_adapt=False, name=None,
):  # fmt: skip
    def update(value, gradient, state, step):
        mean, root = _adam(state, gradient, step, beta1, beta2)
        change = mean / (root + epsilon) + lamb_weight_decay * value
        norms = torch.linalg.vector_norm(value), torch.linalg.vector_norm(change)
        adapted = all(norm > 0 for norm in norms) and (lamb_weight_decay > 0 or always_adapt)
        return value - learning_rate * (norms[0] / norms[1] if adapted else 1) * change

    return _stepped(update)


@optimizer("Rprop")
def rprop(
    learning_rate=0.001, learning_rate_range=(1e-05, 50), parameters=None, etas=(0.5, 1.2), grad_clip=None,
    multi_precision=False, name=None,
):  # fmt: skip
    """The gradient's sign only; each element's step grows while that stays."""

    def update(value, gradient, state, step):
        same = gradient * state.get("before", torch.zeros_like(gradient))
        rate = state.get("rate", torch.full_like(value, learning_rate))
        factor = torch.where(same > 0, etas[1], torch.where(same < 0, etas[0], 1.0))
        rate = state["rate"] = (rate * factor).clamp(*learning_rate_range)
        gradient = torch.where(same < 0, 0, gradient)
        state["before"] = gradient
        return value - rate * torch.sign(gradient)

    return _stepped(update)


@optimizer("ASGD")
def asgd(
    learning_rate=0.001, batch_num=1, parameters=None, weight_decay=None, grad_clip=None,
    multi_precision=False, name=None,
):  # fmt: skip
    """The average of the gradients of the last `batch_num` steps."""

    def update(value, gradient, state, step):
        last = state.setdefault("last", [])
        last.append(gradient)
        del last[:-batch_num]
        return value - learning_rate * sum(last) / len(last)

    return _stepped(update, weight_decay)
