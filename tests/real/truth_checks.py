"""The truth beside float64: mpmath, perturbed operations, smaller inputs. test_truth.py runs it in PyTorch's
Python."""

import pathlib
import sys
from types import SimpleNamespace

import mpmath
import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay.frameworks.torch_framework import TorchFramework  # noqa: E402
from assay.precise import INEXACT, fast_table, precise  # noqa: E402
from assay.spec import TensorSpec  # noqa: E402

FRAMEWORK = TorchFramework()
UNIT = 2.0**-23  # of float32


def truth_of(stem, function, values, dtype="float64", regime="wide"):
    """The value and the derivative at each of these values."""
    x = torch.tensor(values, dtype=getattr(torch, dtype), requires_grad=True)
    entry = SimpleNamespace(name=f"paddle.{stem}")
    of = precise(torch, entry, SimpleNamespace(values=regime), {"x": TensorSpec(x.shape, dtype, 0)}, function)
    y = of(x)
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
    return y, slope


def test_the_square_of_a_large_number_overflows_in_float64_only():
    value, slope = truth_of("asin", torch.asin, [1e200 + 1e200j], "complex128")
    # For large z, asin(z) is π/4 + i ln(2|z|) in this direction, and its derivative has the magnitude 1/|z|.
    assert abs(value.real.item() - 0.7853981633974483) < 1e-15
    assert abs(slope.abs().item() * 1e200 * 2**0.5 - 1) < 1e-14
    _, slope = truth_of("acosh", torch.acosh, [1e200])
    assert abs(slope.item() * 1e200 - 1) < 1e-14


def test_long_doubles_have_ten_more_bits_than_float64():
    mp = mpmath.mp.clone()
    mp.dps = 60
    digits = lambda value: mp.mpf(np.format_float_scientific(value, precision=25, unique=False))  # noqa: E731
    others = {
        "log2": lambda z: mp.log(z) / mp.log(2),
        "rsqrt": lambda z: 1 / mp.sqrt(z),
        "reciprocal": lambda z: 1 / z,
        "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
    }
    judged = 0
    for stem, made in fast_table(np).items():
        function = others.get(stem) or getattr(mp, stem)
        for z in (0.3, -0.7, 1e-9, 2.5, -30.0, 0.3 + 0.4j, 1e-9 - 2j, -3 + 1e-6j):
            wide = np.clongdouble if isinstance(z, complex) else np.longdouble
            if wide is np.clongdouble and (stem, "complex128") in INEXACT:
                continue
            for make, right in zip(made, (function(mp.convert(z)), mp.diff(function, z)), strict=True):
                with np.errstate(all="ignore"):
                    found = np.clongdouble(make(wide(z)))
                if wide is np.longdouble and (np.isnan(found) or mp.im(right)):
                    continue  # outside of the domain
                assert abs(mp.mpc(digits(found.real), digits(found.imag)) / right - 1) < 2.0**-60, (stem, z)
                judged += 1
    assert judged > 200


def test_a_sum_that_cancels_has_all_its_digits():
    # The root of digamma is 1.46163214496836234126… (Abramowitz and Stegun, 6.3.19), 4e-17 from this double.
    value, _ = truth_of("digamma", torch.digamma, [1.4616321449683623])
    assert abs(value.item()) < 2e-16
    value, _ = truth_of("digamma", torch.digamma, [1.0])
    assert value.item() == -0.5772156649015329  # Euler's constant


def test_what_has_no_number_is_the_function_s_own():
    value, slope = truth_of("asin", torch.asin, [2.0, float("nan"), 0.5])
    assert value[:2].isnan().all() and slope[:2].isnan().all() and value[2].item() == 0.5235987755982989
    value, _ = truth_of("lgamma", torch.lgamma, [0.0, -1.0, float("inf")])
    assert value.isinf().all()
    value, _ = truth_of("reciprocal", torch.reciprocal, [1e-309, 0.0])
    assert value.isinf().all()


def test_other_calls_keep_their_function():
    entry, job = SimpleNamespace(name="paddle.asin"), SimpleNamespace(values="wide")
    for of, values, spec in (
        (entry, "wide", TensorSpec((4,), "float32", 0)),
        (entry, "exact", TensorSpec((4,), "float64", 0)),
        (entry, "wide", TensorSpec((1 << 21,), "float64", 0)),
        (SimpleNamespace(name="paddle.relu"), "wide", TensorSpec((4,), "float64", 0)),
    ):
        job.values = values
        assert precise(torch, of, job, {"x": spec}, torch.asin) is torch.asin


def gradient_of(function, x, upstream=0.7):
    y = function(x)
    return torch.autograd.grad(y, x, torch.full_like(y, upstream))[0]


def moved_by_rounding(function, x):
    """The gradient, and how far perturbed operations move it where they count."""
    right = gradient_of(function, x)
    found = torch.zeros_like(right)
    for seed in range(4):
        with FRAMEWORK.rounding(UNIT, 4096 * seed):
            value = gradient_of(function, x)
        found = torch.maximum(found, (FRAMEWORK.cancelled(right, value, UNIT) - right).abs())
    return right, found


def test_a_gradient_that_is_zero_for_a_reason_moves_by_its_terms():
    x = torch.linspace(0.1, 1, 64, dtype=torch.float64).reshape(1, 64).requires_grad_()
    for invariant in (torch.corrcoef, lambda x: torch.softmax(x, -1)):
        right, moved = moved_by_rounding(invariant, x)
        assert right.abs().max() < 1e-14
        assert moved.max() > 2.0**-34  # terms are about 2^-8, in units of 2^-23
    # … and one without terms does not.
    right, moved = moved_by_rounding(torch.exp, x)
    assert moved.max() == 0 and right.min() > 0.7


def test_selected_elements_do_not_move():
    x = torch.linspace(-1, 1, 9, dtype=torch.float64)
    with FRAMEWORK.rounding(UNIT, 1):
        assert torch.equal(torch.relu(x).flip(0)[::2].clone(), x.clamp(min=0)[torch.arange(8, -1, -2)])
        assert not torch.equal(x * 1.5, torch.tensor([1.5 * v for v in x.tolist()], dtype=torch.float64))


def test_inputs_are_filled_before_they_are_widened():
    with FRAMEWORK.rounding(UNIT, 1):
        filled = FRAMEWORK.empty((8,), "bfloat16")
        assert filled.dtype == torch.bfloat16
        assert torch.equal(
            torch.full((8,), 0.1).double(), torch.full((8,), 0.1, dtype=torch.float32).double()
        )


def test_smaller_inputs_are_numbers_where_only_the_range_was_missing():
    x = torch.tensor([1e200, 2.0, 1.0, -1e300], dtype=torch.float64)
    square_less_square = lambda x: x * x * x - x * x * x + torch.sqrt(x)  # noqa: E731
    right = square_less_square(x)
    assert right.isnan().tolist() == [True, False, False, True]
    found = FRAMEWORK.without_nan(right, square_less_square(FRAMEWORK.smaller(x)))
    # A root of a negative number stays NaN, and numbers stay as they are.
    assert found.isfinite().tolist() == [True, True, True, False] and torch.equal(found[1:3], right[1:3])


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
