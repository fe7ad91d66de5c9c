"""Right kernels of one's own, and their references (test_own_kernels.py)."""

import torch


def rms_norm(x, weight, eps=1e-6):
    """In float32, whatever the dtype."""
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


def rms_norm_reference(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Norm(torch.nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class NormReference(Norm):
    def forward(self, values):
        return torch.nn.functional.rms_norm(values, values.shape[-1:], self.weight, self.eps)


class WrongNorm(Norm):
    def forward(self, x):
        return super().forward(x) + 1e-3


class Wider(Norm):
    def __init__(self, size):
        super().__init__(size + 1)


def add_one_(x, y):
    """In place, as many kernels."""
    x += 1


def add_one_and_return_(x, y):
    x += 1
    return x


def add_one_reference(x, y):
    return x + 1


def adds_twice_(x, y):
    x += 2


def lookup(table, index):
    return table[index]


def only_multiples_of_32(x):
    assert x.is_contiguous() and x.shape[-1] % 32 == 0
    return x * 2


def twice(x):
    return x + x


@torch.no_grad()
def forward_only(x):
    return x * 2


def text(x):
    return "text"


def raises(x):
    raise ValueError("only square inputs")


def exits(x):
    raise SystemExit(0)


def float32_only(x):
    if x.dtype != torch.float32:
        raise RuntimeError("float32 only")
    return torch.exp(x)
