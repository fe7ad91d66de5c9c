"""Cases with PyTorch's own names whose tensors are not plain: memory formats and sparse ones."""

import pytest

MEMORY_FORMATS = """\
torch.conv2d(Tensor([2,3,8,8],"float32",memory_format="channels_last"), Tensor([4,3,3,3],"float32"))
torch.nn.functional.max_pool2d(Tensor([2,3,8,8],"float16",memory_format=torch.channels_last), 2)
torch.nn.functional.avg_pool3d(Tensor([2,3,4,8,8],"float32",memory_format=torch.channels_last_3d), 2)
torch.Tensor.to(Tensor([2, 3, 4, 5], "float32"), Dtype(float64), memory_format=torch.channels_last)
torch.Tensor.contiguous(Tensor([2, 3, 4, 5], "float32"), memory_format=torch.channels_last)
torch.clone(Tensor([2, 3, 4, 5], "bfloat16"), memory_format="channels_last")
torch.empty_like(Tensor([2, 3, 4, 5], "int64"), memory_format=torch.channels_last)
torch.zeros_like(Tensor([2, 3, 4, 5], "float32"), memory_format=torch.preserve_format)
""".splitlines()
CONTIGUOUS = """
import functools

import torch

right = torch.Tensor.contiguous
wrong = functools.wraps(right)(lambda self, memory_format=None: right(self))
wrong.__module__ = "torch"
torch.Tensor.contiguous = wrong
torch.overrides.get_testing_overrides.cache_clear()
torch.overrides.get_testing_overrides()[wrong] = lambda: None
"""


@pytest.mark.slow
def test_memory_formats_are_passed_on(api, tmp_path):
    said, listed = api(MEMORY_FORMATS, code=None)
    assert len(listed("pass").splitlines()) == len(MEMORY_FORMATS), said
    (tmp_path / "faulty.py").write_text(CONTIGUOUS)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api(MEMORY_FORMATS[4:5], lane="faulty", reference="faulty", code=1)
    assert "in the memory format" in said
    unknown = ['torch.clone(Tensor([2, 3, 4, 5], "float32"), memory_format="rows_last")']
    said, listed = api(unknown, code=1)
    assert listed("invalid") and "there is no memory format rows_last" in said


SPARSE = """\
torch.sparse.mm(Tensor([6, 8], "float32"), Tensor([8, 3], "float32"))
torch.sparse.addmm(Tensor([6, 3], "float64"), Tensor([6, 8], "float64"), Tensor([8, 3], "float64"), beta=0.5)
torch.sparse.softmax(Tensor([6, 8], "float32"), 1)
torch.sparse.log_softmax(Tensor([6, 8], "float64"), dim=1)
torch.sparse.sum(Tensor([6, 8], "float32"), 0)
torch.sparse.sum(Tensor([6, 8], "float32"))
""".splitlines()
WRONG_SPARSE = """
import torch

right = torch.sparse.sum
torch.sparse.sum = lambda x, *args: right(x, *args) * (1 + 1e-3 * (x.dtype == torch.float32))
torch.sparse.sum.__module__ = "torch.sparse"
"""


@pytest.mark.slow
def test_functions_of_sparse_tensors(api, tmp_path):
    said, listed = api(SPARSE, code=None)
    assert len(listed("pass").splitlines()) == len(SPARSE), said
    (tmp_path / "wrong.py").write_text(WRONG_SPARSE)
    settings = 'version = 1\n[lanes.wrong]\nframework = "torch"\nmodules = ["wrong"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api(SPARSE, lane="wrong", code=1)
    assert len(listed("mismatch").splitlines()) == 2, said
