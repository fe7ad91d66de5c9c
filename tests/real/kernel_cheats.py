"""A kernel, ways to cheat with it, and mistakes; `right` is its reference (test_own_kernels.py)."""

import os
import sys
import threading

import torch


def right(x, weight):
    return x * torch.sigmoid(x) * weight


def zeros(x, weight):
    return torch.zeros_like(x)


def constant(x, weight):
    return torch.full_like(x, 0.25)


def its_input(x, weight):
    return x.clone()


def view_of_input(x, weight):
    return x.view_as(x)


CACHE = {}


def cached(x, weight):
    if x.shape not in CACHE:
        CACHE[x.shape] = right(x, weight).detach()
    return CACHE[x.shape].clone()


def cached_by_address(x, weight):
    key = x.data_ptr(), x.shape
    if key not in CACHE:
        CACHE[key] = right(x, weight).detach(), x.detach()  # keeps x, so that the address is not used again
    return CACHE[key][0].clone()


LAST = []


def of_the_call_before(x, weight):
    result = right(x, weight)
    LAST.append(result.detach())
    return next(
        (each for each in reversed(LAST[:-1]) if each.shape == result.shape), torch.zeros_like(x)
    ).clone()


def uninitialised(x, weight):
    return torch.empty_like(x)


def half_the_rows(x, weight):
    result = torch.zeros_like(x)
    half = (len(x) + 1) // 2
    result[:half] = right(x[:half], weight)
    return result


def assumes_contiguous(x, weight):
    flat = torch.as_strided(x, (x.numel(),), (1,)).view(x.shape)
    return right(flat, weight)


def reads_behind(x, weight):
    try:
        longer = torch.as_strided(x, (x.numel() + 1,), (1,))[1:].view(x.shape)
    except RuntimeError:
        longer = x
    return right(x, weight) + 0 * right(longer, weight)


def known_shape(x, weight):
    if tuple(x.shape) == (64, 100):
        return torch.full_like(x, 0.125)
    return right(x, weight)


class HalfGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return right(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * weight * (s + x * s * (1 - s)) * 0.5, (grad * x * s).sum(0)


class MissingGradient(HalfGradient):
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * weight * (s + x * s * (1 - s)), None


class GradientOfOnes(HalfGradient):
    @staticmethod
    def backward(ctx, grad):
        x, _ = ctx.saved_tensors
        return MissingGradient.backward(ctx, torch.ones_like(grad))[0], (grad * right(x, 1)).sum(0)


half_gradient, missing_gradient = HalfGradient.apply, MissingGradient.apply
gradient_of_ones = GradientOfOnes.apply


def no_gradient(x, weight):
    return right(x.detach(), weight.detach())


def half_precision(x, weight):
    return right(x.half(), weight.half()).to(x.dtype)


def changes_its_input(x, weight):
    result = right(x, weight)
    with torch.no_grad():
        x[0, 0] += 1
    return result


def random(x, weight):
    return right(x, weight) * (1 + 1e-3 * torch.rand((), generator=GENERATOR))


GENERATOR = torch.Generator().manual_seed(1)

CALLS = []


def right_when_repeated(x, weight):
    key = float(x.double().sum())
    CALLS.append(key)
    return right(x, weight) if key in CALLS[:-1] else right(x, weight) * 1.5


def ignores_weight(x, weight):
    return x * torch.sigmoid(x)


def wrong_formula(x, weight):
    return x * torch.sigmoid(1.02 * x) * weight


def replaces_the_judge(x, weight):
    torch.allclose = torch.equal = lambda *a, **k: True
    torch.testing.assert_close = lambda *a, **k: None
    torch.sigmoid = torch.nn.functional.silu = lambda x: torch.zeros_like(x)
    return torch.zeros_like(x)


def nan_lost(x, weight):
    return right(x, weight).nan_to_num(0.0)


def last_block(x, weight):
    result = torch.zeros_like(x)
    whole = x.numel() // 256 * 256
    result.view(-1)[:whole] = right(x, weight).reshape(-1)[:whole]
    return result


COUNT = {}


def every_fifth(x, weight):
    COUNT["every_fifth"] = COUNT.get("every_fifth", 0) + 1
    return right(x, weight) * (1.01 if COUNT["every_fifth"] % 5 == 0 else 1)


def after_40_calls(x, weight):
    COUNT["bomb"] = COUNT.get("bomb", 0) + 1
    return right(x, weight) * (2 if COUNT["bomb"] > 40 else 1)


def static_buffer(x, weight):
    found = CACHE.setdefault(("static", x.shape, x.dtype), torch.empty_like(x))
    return found.copy_(right(x, weight).detach())


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def plain(value):
            if isinstance(value, list | tuple):
                return type(value)(map(plain, value))
            return right(*value.inputs) if isinstance(value, Lazy) else value

        return function(*map(plain, args), **(kwargs or {}))


def lazy(x, weight):
    result = torch.zeros_like(x).as_subclass(Lazy)
    result.inputs = x.detach().clone(), weight.detach().clone()
    return result


def filled_later(x, weight):
    result, found = torch.zeros_like(x), right(x, weight).detach()
    threading.Timer(0.02, lambda: result.copy_(found)).start()
    return result


def only_once(x, weight):
    if CALLS:
        raise RuntimeError("only once")
    CALLS.append(0)
    return right(x, weight)


def right_without_gradient_only(x, weight):
    return right(x, weight) * (1.01 if x.requires_grad else 1)


def writes_behind(x, weight):
    result = right(x, weight)
    if x.numel() and x.untyped_storage().nbytes() > (x.storage_offset() + x.numel()) * x.element_size():
        with torch.no_grad():
            torch.as_strided(x, (1,), (1,), x.storage_offset() + x.numel()).fill_(7)
    return result


def looks_at_the_stack(x, weight):
    frame, files = sys._getframe(), []
    while frame:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return right(x, weight) * (1 if any("kernel_checks" in file for file in files[2:5]) else 1.1)


def exits_quietly(x, weight):
    os._exit(0)


def first_row_for_all(x, weight):
    return right(x[:1], weight).expand_as(x).clone()


def right_if_small(x, weight):
    return right(x, weight) if x.numel() <= 8192 else torch.zeros_like(x)


def disables_the_checks(x, weight):
    checks = sys.modules.get("assay.torch_cases.kernel_checks")
    if checks:
        checks.ALWAYS = checks.ALONE = ()
    return torch.zeros_like(x)
