"""Batch invariance in PyTorch's Python: kernels of random shapes (test_batch_invariance.py runs this)."""

import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "build" / "release" / "lib")]

import torch  # noqa: E402
from assay.execution.require import WAYS, Way  # noqa: E402
from assay.frameworks import load  # noqa: E402
from assay.wire import Stop  # noqa: E402

FRAMEWORK = load("torch")
EVERY = ",".join(f"{way}=bits" for way in WAYS)
attention = torch.nn.functional.scaled_dot_product_attention


def broken(function, *args, ways=EVERY, **kwargs):
    """The fault that is found, or None."""
    try:
        Way(FRAMEWORK, ways).wrap(function, "torch.kernel.f")(*args, **kwargs)
    except Exception as error:
        if isinstance(error, Stop):
            raise
        return str(error)
    return None


def sums(x, weight, blocks):
    """Sums of rows, of which this many parts are added up first."""
    return (x * weight).reshape(len(x), blocks, -1).cumsum(-1)[..., -1].cumsum(-1)[:, -1:]


class Backward(torch.autograd.Function):
    """Its gradient depends on the batch."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * (2.0 if len(grad) < ctx.limit else 2.0 + 2**-22), None


def draws():
    """For each seed batch, row, and the batch from which on a kernel works otherwise."""
    for seed in range(int(sys.argv[1])):
        draw = random.Random(seed)
        torch.manual_seed(seed)
        batch = draw.randint(1, 40)
        limit = draw.choice([each for each in (2, 3, 4, 8, 16, 32, 64, 128, 256) if each != batch])
        yield batch, 64 * draw.randint(4, 16), limit, draw


def test_a_split_that_depends_on_the_batch_is_found_in_each_draw():
    for batch, row, limit, draw in draws():
        blocks = draw.choice((2, 8, 16))

        def split(x, weight, limit=limit, blocks=blocks):
            return sums(x, weight, 4 if len(x) < limit else blocks)

        dtype = draw.choice((torch.float32, torch.float64))
        found = broken(
            split, torch.randn(batch, row, dtype=dtype), torch.randn(row, dtype=dtype), ways="batches=bits"
        )
        assert found, (batch, row, limit, blocks)


def test_a_gradient_that_depends_on_the_batch_is_found_in_each_draw():
    for batch, row, limit, _ in draws():
        found = broken(Backward.apply, torch.randn(batch, row), limit, ways="batches=bits")
        assert found and "the gradient for " in found, (batch, row, limit, found)


def test_invariant_kernels_never_are():
    for batch, row, _, draw in draws():
        blocks = draw.choice((1, 4, 16))
        found = broken(lambda x, w, n=blocks: sums(x, w, n), torch.randn(batch, row), torch.randn(row))
        assert found is None, found


def test_attention_of_chunks_with_a_cache():
    def whole(q, k, v, attn_mask=None, is_causal=False):
        """Each query alone with its keys."""
        rows = []
        for place in range(q.shape[-2]):
            end = k.shape[-2] - q.shape[-2] + place + 1 if is_causal or attn_mask is not None else k.shape[-2]
            weights = (q[..., place : place + 1, :] * k[..., :end, :]).sum(-1, keepdim=True).softmax(-2)
            rows.append((weights * v[..., :end, :]).sum(-2, keepdim=True))
        return torch.cat(rows, -2)

    def by_length(q, k, v, attn_mask=None, is_causal=False):
        return whole(q, k, v, attn_mask, is_causal) * (1 if q.shape[-2] > 1 else 1 + 2**-22)

    given = [torch.randn(2, 3, 17, 8) for _ in range(3)]
    assert broken(whole, *given, ways="chunks=bits,cache=bits", is_causal=True) is None
    found = broken(by_length, *given, ways="cache=bits", is_causal=True)
    assert found and "the result for x0[..., 16:17, :], x1[..., 0:17, :], x2[..., 0:17, :] differs" in found
    for batch in (1, 2, 7, 256):
        given = [torch.randn(batch, 2, 12, 8) for _ in range(3)]
        assert broken(attention, *given, ways="chunks=rounding,cache=rounding", is_causal=True) is None


def test_a_gradient_of_chunks_counts():
    class Longer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, mask, causal):
            ctx.save_for_backward(q)
            return attention(q, k, v, mask, 0.0, causal)

        @staticmethod
        def backward(ctx, grad):
            (q,) = ctx.saved_tensors
            return grad * q.shape[-2], None, None, None, None

    def kernel(q, k, v, attn_mask=None, is_causal=False):
        return Longer.apply(q, k, v, attn_mask, is_causal)

    given = [torch.randn(2, 2, 16, 8) for _ in range(3)]
    found = broken(kernel, *given, ways="chunks=rounding", is_causal=True)
    assert found and "the gradient for x0[..., 0:2, :]" in found, found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name)
