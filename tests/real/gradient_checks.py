"""Gradients of the references against central differences in float64, for every API that can be called with
small matrices only. test_gradients.py runs it in PyTorch's Python.

Agreement of two frameworks hides an error that both have: the gradient of det at a singular matrix.
"""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay import rules, shared, wire  # noqa: E402
from assay.draw_distribution import Distribution  # noqa: E402
from assay.regimes import fill_of  # noqa: E402
from assay.registry import changes_input, load_all  # noqa: E402
from assay.results import flatten  # noqa: E402
from assay.spec import TensorSpec  # noqa: E402

STEP = 2.0**-18
EXTENT = 4
SHAPE = (EXTENT, EXTENT)
FEWEST = 240  # APIs that are checked; 248 on 2026-11-26

# References whose gradient is not that of the result, and why.
DEVIATIONS = {
    "paddle.nn.functional.sigmoid_focal_loss": "the gradient of the label omits the cross-entropy term",
    "paddle.linalg.cholesky_inverse": "PyTorch's has terms of a triangle that the result does not read",
}


def filled(spec, fill):
    """A tensor by a rule."""
    generator = torch.Generator().manual_seed(17 + spec.index)
    x = torch.rand(spec.shape, generator=generator, dtype=torch.float64)
    if isinstance(fill, rules.Literal):
        return torch.tensor(fill.values, dtype=torch.float64).reshape(spec.shape)
    if fill is None:
        return x - 0.5
    low, high = max(fill.low, -1e3), min(fill.high, 1e3)
    if fill.kind in (shared.INTEGERS, shared.ENDS):
        return torch.floor(low + x * (high - low))
    if fill.kind == shared.HALVES:
        return torch.floor(2 * (low + x * (high - low))) / 2
    x = low + x * (high - low)
    if fill.kind == shared.INCREASING:
        return x.sort(-1).values
    if fill.kind in (shared.SYMMETRIC, shared.POSITIVE_DEFINITE):
        x = (x + x.mT) / 2
    if fill.kind == shared.POSITIVE_DEFINITE:
        x = x + EXTENT * max(abs(low), abs(high)) * torch.eye(EXTENT, dtype=torch.float64)
    return x


def outputs_of(found):
    leaves = flatten(found, "", torch.Tensor, lambda tensor: None)
    return [leaf for _, leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def deviation(entry):
    """The difference of gradient and central difference, relative to the larger one; None if the API cannot
    be called like this."""
    places = rules.inspect.signature(entry.call).parameters.values()
    names = [one.name for one in places if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if not 1 <= len(names) <= 3 or entry.kind or entry.skip or entry.layouts or entry.grad is not True:
        return None
    named = {name: TensorSpec(SHAPE, "float64", place) for place, name in enumerate(names)}
    values = [filled(spec, fill_of(entry, name, named, spec, "usual")) for name, spec in named.items()]
    whole = [bool((value == value.floor()).all()) for value in values]
    free = [value.clone().requires_grad_(not fixed) for value, fixed in zip(values, whole, strict=True)]

    def evaluate(tensors):
        torch.manual_seed(3)
        return entry.call(*tensors)

    found = evaluate(free)
    if any(
        isinstance(part, Distribution) for part in (found if isinstance(found, tuple | list) else [found])
    ):
        return None
    outputs = outputs_of(found)
    wanted = [tensor for tensor in free if tensor.requires_grad]
    if not outputs or not wanted or any(output.is_complex() for output in outputs):
        return None
    weights = [torch.linspace(0.3, 1, out.numel(), dtype=torch.float64).reshape(out.shape) for out in outputs]
    gradients = torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
    worst = 0.0
    for index, gradient in enumerate(gradients):
        target = wanted[index].detach()
        way = torch.cos(torch.arange(target.numel(), dtype=torch.float64)).reshape(target.shape)
        if target.ndim > 1 and torch.equal(target, target.mT):  # a function of one triangle
            way = way + way.mT
        sides = []
        for sign in (1, -1):
            moved = [t.detach().clone() for t in free]
            place = next(i for i, t in enumerate(free) if t is wanted[index])
            moved[place] = (target + sign * STEP * way).requires_grad_()
            sides.append([out.detach() for out in outputs_of(evaluate(moved))])
        if len(sides[0]) != len(outputs):
            return None
        steps = zip(weights, *sides, strict=True)
        found = sum(float((w * (up - down)).sum()) for w, up, down in steps) / (2 * STEP)
        stated = 0.0 if gradient is None else float((gradient * way).sum())
        worst = max(worst, abs(found - stated) / max(abs(found), abs(stated), 1e-3))
    return worst


def all_deviations():
    found, checked = {}, 0
    for name, entry in load_all().items():
        if changes_input(name) or name.startswith("paddle.Tensor."):
            continue  # the same functions
        try:
            by = deviation(entry)
        except wire.Stop:
            continue
        except Exception:  # it takes other shapes or dtypes
            continue
        checked += by is not None
        if by is not None and not by < 1e-5:
            found[name] = by
    return found, checked


def test_gradients_are_those_of_the_results():
    found, checked = all_deviations()
    assert found.keys() == DEVIATIONS.keys(), found
    assert checked >= FEWEST, checked


def test_the_gradient_of_det_at_a_singular_matrix_is_the_adjugate():
    """Paddle and PyTorch give 0, so their agreement would show nothing."""
    x = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(load_all()["paddle.linalg.det"].call(x), x)
    right = torch.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=torch.float64)
    assert torch.allclose(gradient, right)
    x = torch.tensor([[1j, 2.0, 0], [1, -2j, 0], [3, 4, 1j]], dtype=torch.complex128, requires_grad=True)
    (gradient,) = torch.autograd.grad(load_all()["paddle.linalg.det"].call(x).real, x)
    cofactors = torch.tensor([[2, -1j, 4 + 6j], [-2j, -1, 6 - 4j], [0, 0, 0]], dtype=x.dtype)
    assert torch.allclose(gradient, cofactors.conj())
    x = torch.zeros((2, 3, 3), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(load_all()["paddle.linalg.det"].call(x).sum(), x)
    assert torch.equal(gradient, torch.zeros_like(x))


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
