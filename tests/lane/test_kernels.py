"""What a lane has had no kernel for."""

from types import SimpleNamespace

from assay.call import LARGE_INPUT
from assay.kernels import Kernels
from assay.spec import TensorSpec
from assay.wire import NO_KERNEL, OK


def job(api, *dtypes, size=LARGE_INPUT):
    specs = [TensorSpec((size,), dtype, index) for index, dtype in enumerate(dtypes)]
    return SimpleNamespace(api=api, args=tuple(specs), kwargs={})


def test_the_last_case_of_a_kind_tells():
    kernels = Kernels()
    assert not kernels.in_doubt(job("paddle.abs", "float16"))
    kernels.learn(job("paddle.abs", "float16", size=1), NO_KERNEL, "forward")
    assert kernels.in_doubt(job("paddle.abs", "float16"))
    assert not kernels.in_doubt(job("paddle.abs", "float16", size=1))  # it is filled in no time
    assert not kernels.in_doubt(job("paddle.abs", "float32"))
    kernels.learn(job("paddle.abs", "float16"), OK, "")
    assert not kernels.in_doubt(job("paddle.abs", "float16"))


def test_of_a_kind_that_is_new_its_dtypes_tell():
    kernels = Kernels()
    for api in ("paddle.abs", "paddle.exp", "paddle.sin"):
        kernels.learn(job(api, "float16"), NO_KERNEL, "forward")
    assert kernels.in_doubt(job("paddle.cos", "float16", "float16"))
    assert kernels.in_doubt(job("paddle.where", "bool", "float16", "float32"))
    assert not kernels.in_doubt(job("paddle.where", "bool", "float32"))
    for api in ("paddle.add", "paddle.cast", "paddle.concat"):
        kernels.learn(job(api, "float16"), OK, "")
    assert not kernels.in_doubt(job("paddle.cos", "float16", "float16"))


def test_whole_numbers_are_always_filled_and_a_missing_gradient_is_none_of_it():
    kernels = Kernels()
    kernels.learn(job("paddle.abs", "int64"), NO_KERNEL, "forward")
    assert not kernels.in_doubt(job("paddle.abs", "int64"))
    kernels.learn(job("paddle.abs", "float16"), NO_KERNEL, "backward")
    assert not kernels.in_doubt(job("paddle.abs", "float16"))
