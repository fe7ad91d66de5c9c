"""PyTorch against itself, mostly on thousands of elements: rounding that was once called a fault."""

import pytest
from engine import run

pytestmark = pytest.mark.slow

CASES = (
    'torch.softmax(Tensor([2, 3, 4096], "float32"), -1)',
    'torch.nn.functional.log_softmax(Tensor([40000], "float32"), -1)',
    'torch.nn.functional.kl_div(Tensor([5000, 7], "float32"), Tensor([5000, 7], "float32"))',
    'torch.lerp(Tensor([37, 1031], "float32"), Tensor([37, 1031], "float32"), 0.4, '
    'out=Tensor([37, 1031], "float32"))',
    'torch.logaddexp2(Tensor([37, 1031], "float32"), Tensor([37, 1031], "float32"))',
    'torch.special.erfcx(Tensor([3001], "float32"))',
    'torch.Tensor.mvlgamma_(Tensor([37, 1031], "float32"), 1)',
    'torch.Tensor.addcmul_(Tensor([37, 1031], "float32"), Tensor([37, 1031], "float32"), '
    'Tensor([37, 1031], "float32"), value=3.14)',
    'torch.div(Tensor([3, 41, 257], "float32"), Tensor([3, 41, 257], "float32"), rounding_mode="trunc")',
    'torch.cov(Tensor([3001], "float32"))',
    'torch.linalg.vector_norm(Tensor([3001], "float32"), ord=6)',
    'torch.dist(Tensor([3, 41, 257], "float32"), Tensor([3, 41, 257], "float32"), 4)',
    'torch.digamma(Tensor([3, 41, 257], "float32"))',
    'torch.Tensor.tan_(Tensor([37, 1031], "complex64"))',
    'torch.special.scaled_modified_bessel_k0(Tensor([3, 41, 257], "float32"))',
    'torch.prod(Tensor([3, 41, 257], "complex64"))',
    'torch.nn.functional.multilabel_margin_loss(Tensor([3001], "float32"), Tensor([3001], "int64"))',
    'torch.as_strided_copy(Tensor([16], "bfloat16"), tuple(2, 2, 2, 2), tuple(1, 1, 1, 1), storage_offset=0)',
)


@pytest.mark.parametrize("seed", ["0", "1", "8"])
def test_rounding_is_no_fault(tmp_path, seed):
    corpus = tmp_path / "cases.txt"
    corpus.write_text("\n".join(CASES) + "\n")
    flags = ("--test-lane=torch", "--reference-lane=torch", f"--random_seed={seed}")
    assert run(tmp_path, corpus, *flags) == dict.fromkeys(CASES, "pass")
