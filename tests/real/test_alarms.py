"""No false alarms: assay ships an entry for each fault that the examples and the public sample show.

A [[fault]] of a finding means that somebody has looked at the call itself, without assay."""

import pathlib

import pytest
from engine import failures, run, unknown_faults
from tree import ROOT

pytestmark = pytest.mark.slow

SAMPLE = ROOT.parent / "shared" / "corpora" / "sample_core.txt"


def check(folder, expected, *flags):
    """That each of these cases has the outcome that stands beside it."""
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(expected) + "\n")
    assert run(folder, corpus, *flags) == expected


def test_of_the_examples_what_fails_is_known(tmp_path):
    found = run(tmp_path, ROOT / "examples" / "api_configs.txt")
    (float33,) = unknown_faults(tmp_path)
    assert (float33["api"], float33["outcome"]) == ("paddle.abs", "invalid")
    assert failures(found)["paddle.abs", "invalid"] == 1
    assert [case for case, outcome in found.items() if outcome == "unsupported"] == [
        'paddle.finfo("float32")'
    ]


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"there is no {SAMPLE.name} beside the checkout")
@pytest.mark.parametrize("seed", ["0", "1"])
def test_of_the_sample_what_fails_is_known(tmp_path, seed):
    found = run(tmp_path, SAMPLE, f"--random_seed={seed}")
    assert unknown_faults(tmp_path) == []
    definite = sum(outcome != "unsupported" for outcome in found.values())
    assert len(found) == 2000 and definite >= 0.96 * 2000


def test_a_slope_with_the_roundings_of_tanh_times_x_is_seen(tmp_path):
    expected = {
        'paddle.nn.functional.mish(Tensor([60, 100], "float32"))': "mismatch",  # docs/findings
        'paddle.nn.functional.mish(Tensor([60, 100], "float64"))': "pass",
    }
    check(tmp_path, expected)
    assert unknown_faults(tmp_path) == []


def test_what_was_once_a_false_alarm_is_none(tmp_path):
    expected = {
        # The second result is never set without a residual: its memory does not exist. The kernel dies on
        # processors without AVX-512.
        'paddle.incubate.nn.functional.fused_layer_norm(Tensor([16, 256], "float32"), '
        'Tensor([256], "float32"), Tensor([256], "float32"), 1e-05, begin_norm_axis=1)': (
            "pass" if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text().split() else "crash"
        ),
        'paddle.nn.functional.pad(Tensor([1, 1, 1, 2, 3], "float64"), list[0, 0, 0, 0, 0, 0, 1, 1, 0, 0], '
        'value=Tensor([1], "float64"))': "pass",
        'paddle.squeeze(Tensor([], "float32"), axis=Tensor([1], "int32"))': "pass",
        # Paddle's "float" is float64, as NumPy's.
        'paddle.Tensor.cast(Tensor([4, 5], "float32"), "float")': "pass",
        # Overlaps of 2/5 in float32 are above 0.4 as a double, and equal to it as a float32.
        'paddle.vision.ops.nms(Tensor([200, 4], "float32"), 0.4, Tensor([200], "float32"))': "pass",
        # A build without CUDA knows no flags of cuDNN, which this asks for first.
        'paddle.nn.functional.flashmask_attention(Tensor([1, 8, 2, 4], "float16"), '
        'Tensor([1, 8, 2, 4], "float16"), Tensor([1, 8, 2, 4], "float16"), '
        'startend_row_indices=Tensor([1, 1, 8, 1], "int32"), causal=True)': "no_kernel",
        # The order of the results is not promised.
        'paddle.topk(Tensor([6, 50], "float32"), 5, sorted=False)': "pass",
        'paddle.topk(Tensor([9, 40], "int64"), 5, 0, False, False)': "pass",
        'paddle.Tensor.topk(Tensor([6, 5000], "float32"), 1000, -1, True, False)': "pass",
        # Paddle gives it the shape [2, 0, -2, 2], PyTorch refuses; the lane has to survive it.
        'paddle.nn.functional.conv2d_transpose(Tensor([2, 3, 0, 2], "float64"), '
        'Tensor([2, 2, 0, 1], "float64"), groups=1, padding=list[1, 1], data_format="NHWC")': "rejected",
    }
    check(tmp_path, expected)


def test_places_that_are_written_twice_have_no_gradient_that_both_agree_on(tmp_path):
    case = 'paddle.Tensor.__setitem__(Tensor([12, 12, 3], "float32"), tuple(Tensor([80], "int64"), '
    case += 'Tensor([80], "int64")), Tensor([80, 3], "float32"))'
    # Under `layout` Paddle writes outside of the view (docs/findings/paddle-setitem-strided-list.toml).
    check(tmp_path, {case: "pass"}, "--values=usual,wide,nan,infinity,exact")


# 0.9 is no float32; 0.41 - 0.9 * 0.47 cancels.
def test_a_number_that_is_rounded_before_terms_cancel_is_no_alarm(tmp_path):
    case = 'torch.Tensor.add(Tensor([40, 60], "float32"), Tensor([40, 60], "float32"), alpha=0.9)'
    check(tmp_path, {case: "pass"}, "--test-lane=torch", "--reference-lane=torch")


def test_nor_what_other_values_once_made_one(tmp_path):
    cases = (
        # 1 - tanh(x)^2 and 1 + erf(x) have digits of 1, not of themselves.
        'paddle.nn.functional.gelu(Tensor([1, 138, 1024], "float32"))',
        'paddle.nn.functional.tanh(Tensor([4096, 30], "float32"), None)',
        # Factors that overflow before a small one comes, and terms that overflow before they cancel.
        'paddle.Tensor.__truediv__(Tensor([59250], "float32"), Tensor([59250], "float32"))',
        'paddle.pow(Tensor([12, 9, 32], "float32"), 2)',
        'paddle.sparse.sinh(Tensor([8, 16, 32], "float32"))',
        'paddle.nn.functional.linear(x=Tensor([8, 64], "float32"), weight=Tensor([64, 1024], "float32"))',
        # A promise of the caller's: no value twice, one layout in memory.
        'paddle.isin(Tensor([2, 5, 100], "float16"), Tensor([500], "float16"), True, True)',
        'paddle.as_strided(Tensor([32, 32], "float32"), shape=tuple(3), stride=tuple(1))',
        'paddle.view(Tensor([10, 10, 10, 20], "float32"), list[1000, -1])',
        # What nobody defines: a derivative at a kink, an exponent of NaN, a place among equals.
        'paddle.atan2(x=Tensor([6, 6, 6, 6], "float64"), y=Tensor([6, 6, 6, 6], "float64"))',
        'paddle.atan2(x=Tensor([6, 6, 6, 6], "float32"), y=Tensor([6, 6, 6, 6], "float32"))',
        'paddle.frexp(Tensor([4, 5, 2], "float32"))',
        'paddle.median(Tensor([5, 4], "float32"), 1, False, mode="min")',
        # NumPy's definition, where PyTorch has another: sign(nan), copysign of whole numbers.
        'paddle.sign(Tensor([2, 3, 4, 5], "float64"))',
        'paddle.sgn(Tensor([2, 3, 4, 5], "float64"))',
        'paddle.copysign(Tensor([11, 17, 10], "int32"), Tensor([11, 17, 10], "int32"))',
        'paddle.increment(x=Tensor([1], "int32"))',
        'paddle.quantile(Tensor([3, 6, 3, 4, 2, 5], "float64"), q=0.5)',
        # The mean of an image's bins: assay's reference once had the digits of float32.
        'paddle.vision.ops.psroi_pool(Tensor([2, 8, 16, 16], "float64"), Tensor([3, 4], "float64"), '
        'Tensor([2], "int32"), 2)',
        # Eight axes, which Paddle's transpose does not know.
        'paddle.bitwise_xor(Tensor([2, 3, 3, 3, 4, 1, 5, 2], "int64"), '
        'Tensor([2, 3, 3, 3, 4, 1, 5, 2], "int64"))',
    )
    check(tmp_path, dict.fromkeys(cases, "pass"))


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_what_only_some_values_show_is_found_under_any_seed(tmp_path, seed):
    expected = {
        # The sigmoid of 0 less the label: 0.25 for a label of 0.25; Paddle gives -0.75.
        "paddle.nn.functional.binary_cross_entropy_with_logits("
        'Tensor([20, 10], "float32"), Tensor([20, 10], "float32"))': "mismatch",
        "paddle.nn.functional.binary_cross_entropy_with_logits("
        'Tensor([20, 100], "float32"), Tensor([20, 100], "float32"))': "pass",
        # The padding row has no gradient, by the documentation.
        'paddle.nn.functional.embedding(Tensor([3, 1], "int64"), Tensor([10, 3], "float32"), '
        "padding_idx=9, sparse=True)": "mismatch",
    }
    check(tmp_path, expected, "--values=usual", f"--random_seed={seed}")


def test_nor_what_paddle_documents_and_what_paddle_s_equal_takes_for_equal(tmp_path):
    expected = {
        # Documented: the rows that are too long are changed in place.
        'paddle.nn.functional.embedding(Tensor([3, 1], "int64"), weight=Tensor([10, 3], "float32"), '
        "max_norm=0.5, norm_type=3.0)": "pass",
        # paddle.equal takes draws of 1e-20 for equal (docs/findings/paddle-equal-tiny.toml).
        "paddle.normal(mean=0.0, std=1e-20, shape=list[32, 3, 2, 2])": "pass",
    }
    check(tmp_path, expected)


def test_nor_what_cancels_in_the_wider_of_two_dtypes(tmp_path):
    case = 'paddle.logaddexp(Tensor([4, 3, 2], "float16"), Tensor([4, 3, 2], "float64"))'
    check(tmp_path, {case: "pass"}, "--values=nan", "--random_seed=1")


@pytest.mark.parametrize("seed", ["5", "6", "7"])
def test_nor_what_some_seeds_once_made_one(tmp_path, seed):
    cases = (
        # torch.pow's own gradient takes 1 from a float16 exponent in float16.
        'paddle.Tensor.__pow__(Tensor([4, 3, 2], "float64"), Tensor([4, 3, 2], "float16"))',
        # The real part of a quotient of complex numbers has the digits of the whole number.
        'paddle.Tensor.__truediv__(Tensor([2, 3, 4, 5], "float32"), Tensor([5], "complex64"))',
        # PyTorch's quotient overflows before its small upstream gradient comes.
        'paddle.Tensor.__truediv__(Tensor([1, 1888], "float64"), Tensor([1888], "float64"))',
    )
    check(tmp_path, dict.fromkeys(cases, "pass"), f"--random_seed={seed}")


@pytest.mark.parametrize("seed", ["0", "1"])
def test_nor_what_a_rounded_argument_decides_in_pytorch(tmp_path, seed):
    cases = (
        # 1 - eps is a number of the dtype only if eps is large.
        'torch.logit(Tensor([40], "float16"), 1e-06)',
        'torch.logit(Tensor([40], "float32"), 1e-06)',
        'torch.logit(Tensor([5000], "float32"), 1e-07)',
        # The cosine of 700 times an angle.
        'torch.special.chebyshev_polynomial_t(Tensor([40], "float32"), 700)',
        'torch.special.chebyshev_polynomial_v(Tensor([40], "float32"), 700)',
    )
    check(tmp_path, dict.fromkeys(cases, "pass"), f"--random_seed={seed}")


ADDED_IN_MEMORY = """
import functools

import torch

right = torch.Tensor.scatter_reduce_


@functools.wraps(right)
def in_memory(self, dim, index, src, reduce, *, include_self=True):  # one after the other, as on a GPU
    for row, places in enumerate(index):
        for column, place in enumerate(places):
            self[row, place] += src[row, column]
    return self


in_memory.__module__ = "torch"
torch.Tensor.scatter_reduce_ = in_memory
torch.overrides.get_testing_overrides.cache_clear()
torch.overrides.get_testing_overrides()[in_memory] = lambda: None
"""
SCATTERED = (
    'torch.Tensor.scatter_reduce_(Tensor([10, 5], "bfloat16"), -1, Tensor([5, 5], "int64"), '
    'Tensor([5, 5], "bfloat16"), "sum", include_self=True)'
)


@pytest.mark.slow
def test_half_precision_may_be_added_up_in_memory(api, tmp_path):
    (tmp_path / "in_memory.py").write_text(ADDED_IN_MEMORY)
    settings = 'version = 1\n[lanes.gpu]\nframework = "torch"\nmodules = ["in_memory"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    for seed in range(4):
        _, listed = api([SCATTERED], "--values=usual,nan,layout", f"--random_seed={seed}", lane="gpu")
        assert listed("pass").strip() == SCATTERED
