"""Small models of several kinds, one step of training each, and calls of detection models."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(s, i, o, st=1):
        super().__init__()
        s.c1 = nn.Conv2d(i, o, 3, st, 1, bias=False)
        s.b1 = nn.BatchNorm2d(o)
        s.c2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        s.b2 = nn.BatchNorm2d(o)
        s.d = (
            nn.Sequential(nn.Conv2d(i, o, 1, st, bias=False), nn.BatchNorm2d(o))
            if st != 1 or i != o
            else None
        )

    def forward(s, x):
        y = F.relu(s.b1(s.c1(x)), inplace=True)
        y = s.b2(s.c2(y))
        y += x if s.d is None else s.d(x)
        return F.relu_(y)


class ResNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.c = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        s.b = nn.BatchNorm2d(16)
        s.p = nn.MaxPool2d(3, 2, 1)
        s.l = nn.Sequential(Block(16, 16), Block(16, 32, 2), Block(32, 64, 2))
        s.a = nn.AdaptiveAvgPool2d(1)
        s.f = nn.Linear(64, 10)

    def forward(s, x):
        return s.f(torch.flatten(s.a(s.l(s.p(F.relu(s.b(s.c(x)))))), 1))


class RNN(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(50, 16, padding_idx=0)
        s.r = nn.LSTM(16, 20, 2, batch_first=True, dropout=0.2, bidirectional=True)
        s.g = nn.GRU(40, 12, batch_first=True)
        s.o = nn.Linear(12, 50)

    def forward(s, x):
        y, _ = s.r(s.e(x))
        y, h = s.g(y)
        return s.o(F.dropout(y, 0.3, s.training))


class GPT(nn.Module):
    def __init__(s, d=32, h=4, v=64):
        super().__init__()
        s.w = nn.Embedding(v, d)
        s.p = nn.Embedding(32, d)
        s.q = nn.Linear(d, 3 * d)
        s.o = nn.Linear(d, d)
        s.n = nn.LayerNorm(d)
        s.m = nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d), nn.Dropout(0.1)
        )
        s.h = h
        s.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(s, x):
        b, t = x.shape
        y = s.w(x) + s.p(torch.arange(t))
        q, k, v = s.q(s.n(y)).chunk(3, -1)
        q, k, v = (z.view(b, t, s.h, -1).transpose(1, 2) for z in (q, k, v))
        a = (q @ k.transpose(-2, -1)) / (q.size(-1) ** 0.5)
        a = a.masked_fill(s.mask[:, :, :t, :t] == 0, float("-inf"))
        a = F.softmax(a, -1)
        y = y + s.o((a @ v).transpose(1, 2).contiguous().view(b, t, -1))
        y = y + s.m(s.n(y))
        return F.linear(y, s.w.weight)


class RMS(nn.Module):
    def __init__(s, d=32):
        super().__init__()
        s.w = nn.Parameter(torch.ones(d))
        s.g = nn.Linear(d, 64, bias=False)
        s.u = nn.Linear(d, 64, bias=False)
        s.d = nn.Linear(64, d, bias=False)
        s.e = nn.Embedding(64, d)

    def rot(s, x):
        a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-b, a), -1)

    def forward(s, x):
        y = s.e(x)
        n = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * s.w
        t = torch.arange(x.shape[1]).float()
        f = torch.outer(t, 1 / 10000 ** (torch.arange(0, 32, 2).float() / 32))
        f = torch.cat((f, f), -1)
        n = n * f.cos() + s.rot(n) * f.sin()
        n = n.view(*n.shape[:2], 4, 8).transpose(1, 2)
        n = F.scaled_dot_product_attention(n, n, n, is_causal=True).transpose(1, 2).flatten(2)
        y = y + s.d(F.silu(s.g(n)) * s.u(n))
        return y @ s.e.weight.T


class UNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Conv2d(3, 8, 3, padding=1)
        s.b = nn.Conv2d(8, 16, 3, padding=1)
        s.g = nn.GroupNorm(4, 16)
        s.u = nn.ConvTranspose2d(16, 8, 2, 2)
        s.c = nn.Conv2d(16, 5, 1)
        s.i = nn.InstanceNorm2d(8, affine=True)

    def forward(s, x):
        a = F.leaky_relu(s.i(s.a(x)), 0.1)
        b = F.hardswish(s.g(s.b(F.avg_pool2d(a, 2))))
        c = torch.cat([s.u(b), a], 1)
        return F.interpolate(s.c(c), scale_factor=2, mode="bilinear", align_corners=False)


def train(m, make, loss, opt):
    o = opt(m.parameters())
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(o, 10)
    for _ in range(1):
        x, t = make()
        l = loss(m(x), t)
        o.zero_grad(set_to_none=True)
        l.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        sch.step()
    m.eval()
    with torch.no_grad():
        m(x)
    return l.item()


def img():
    return torch.randn(2, 3, 32, 32), torch.randint(0, 10, (2,))


def tok(n=50):
    x = torch.randint(1, n, (2, 12))
    return x, x


def seq(y, t):
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), t.reshape(-1), ignore_index=0)


print(
    train(
        ResNet(),
        img,
        F.cross_entropy,
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True),
    )
)
print(train(RNN(), tok, seq, lambda p: torch.optim.Adam(p, 1e-3)))
print(train(GPT(), lambda: tok(64), seq, lambda p: torch.optim.AdamW(p, 1e-3, foreach=True)))
print(train(RMS(), lambda: tok(64), seq, lambda p: torch.optim.RMSprop(p, 1e-3)))
print(
    train(
        UNet(),
        lambda: (torch.randn(2, 3, 16, 16), torch.randn(2, 5, 32, 32)),
        lambda y, t: F.smooth_l1_loss(y, t)
        + F.mse_loss(y, t) * 0.1
        + F.binary_cross_entropy_with_logits(y, (t > 0).float()),
        lambda p: torch.optim.Adagrad(p, 1e-2),
    )
)
# detection like bits
b = torch.rand(10, 4)
s, i = torch.sort(torch.rand(10), descending=True)
k = b[i][:5]
w = (k[:, 2:] - k[:, :2]).clamp(min=0)
ar = w[:, 0] * w[:, 1]
v, j = torch.topk(ar, 3)
torch.where(ar > 0.1, ar, torch.zeros_like(ar))
torch.stack([ar, ar]).unbind(0)
k.new_zeros(3).scatter_(0, torch.tensor([0, 2]), 1.0)
torch.einsum("ij,kj->ik", k, k)
k[k > 0.5]
k.index_select(0, j)
F.one_hot(torch.tensor([1, 2]), 4)
torch.cumsum(ar, 0)
F.pad(k, (1, 1))
k.split(2)
torch.meshgrid(ar, ar, indexing="ij")
ar.std()
torch.linalg.norm(k)
k.max(dim=1)
F.normalize(k)
ar.tolist()
F.embedding_bag(torch.randint(0, 8, (3, 4)), torch.randn(8, 6))
with torch.autocast("cpu", dtype=torch.bfloat16):
    m = nn.Linear(8, 8)
    (m(torch.randn(4, 8)).float().sum()).backward()
