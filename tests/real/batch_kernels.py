"""Kernels whose results do and do not depend on the batch (test_batch_invariance.py)."""

import torch


def invariant(x, weight):
    """Each row by the same steps, whatever the batch is."""
    rows = [(row * weight).sum(-1, keepdim=True) for row in x]
    return torch.stack(rows)


def split_by_batch(x, weight):
    """Sums of as many blocks as the batch leaves cores for."""
    blocks = 16 if len(x) < 4 else 4 if len(x) < 8 else 1
    parts = (x * weight).reshape(len(x), blocks, -1).sum(-1)
    total = parts[:, 0]
    for block in range(1, blocks):
        total = total + parts[:, block]
    return total[:, None]


def by_position(x, weight):
    """Odd rows are summed in two halves."""
    rows = [(row * weight).reshape(1 + i % 2, -1).sum(-1).sum(0, keepdim=True) for i, row in enumerate(x)]
    return torch.stack(rows)


class BackwardOnly(torch.autograd.Function):
    """The gradient alone depends on the batch."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.stack([(row * weight).sum(-1, keepdim=True) for row in x])

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        scale = 1.0 + 1.2e-7 * (len(x) > 4)
        return grad * weight * scale, (grad * x).sum(0)


backward_only = BackwardOnly.apply
