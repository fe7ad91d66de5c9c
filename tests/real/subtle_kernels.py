"""Right kernels, and twins that are wrong in one respect: `softmax_…` is to be `softmax`."""

import random

import torch


def softmax(x, scale=1.0):
    e = torch.exp(x * scale - (x * scale).amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def softmax_without_the_last_block(x, scale=1.0):
    e = torch.exp(x * scale - (x * scale).amax(-1, keepdim=True))
    return e / e[..., : max(x.shape[-1] // 32 * 32, 1)].sum(-1, keepdim=True)


def softmax_ignores_scale(x, scale=1.0):
    return softmax(x)


def softmax_overflows(x, scale=1.0):
    e = torch.exp(x * scale)
    return e / e.sum(-1, keepdim=True)


def softmax_loses_nan(x, scale=1.0):
    return softmax(torch.where(x.isnan(), -torch.inf, x), scale)


def rows(x):
    return x.sum(-1)


def rows_in_bfloat16(x):
    total = torch.zeros(x.shape[:-1], dtype=x.dtype)
    for column in x.unbind(-1):
        total = total + column
    return total


def biased(x, bias):
    return (x + bias) * 2


def biased_along_the_rows_of_a_square(x, bias):
    return biased(x, bias[:, None] if x.shape[0] == x.shape[1] else bias)


class BiasGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return biased(x, bias)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, grad.sum(0)


biased_with_half_of_one_gradient = BiasGradient.apply


def norm(x):
    return x / (x.pow(2).sum(-1, keepdim=True) + 1e-5).sqrt()


def norm_of_nothing_has_no_columns(x):
    return norm(x) if x.numel() else x.new_zeros(0)


def norm_ignores_strides(x):
    return norm(torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), x.storage_offset()))


def norm_at_times_wrong(x):
    return norm(x) + (0.01 if random.Random().random() < 0.3 else 0)


def norm_with_epsilon_outside(x):
    return x / (x.pow(2).sum(-1, keepdim=True).sqrt() + 1e-5)


def product(x, y):
    return torch.complex(x.real * y.real + x.imag * y.imag, x.imag * y.real - x.real * y.imag)


def product_not_conjugated(x, y):
    return x * y


def whole(x, y):
    return x * y + 3


def whole_through_float32(x, y):
    return (x.float() * y.float() + 3).to(x.dtype)


def sums(x):
    return x.cumsum(-1)


def sums_lose_the_third_block(x):
    first, *others = (part.cumsum(-1) for part in x.split(64, -1))
    return torch.cat([first, *(each + first[..., -1:] for each in others)], -1)
