"""Every framework has all that a lane asks of one."""

import importlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from assay.frameworks import Framework
from assay.frameworks.torch_framework import KEPT_BYTES, TorchFramework
from assay.server import describe

FOLDER = Path(__file__).parents[2] / "python" / "assay" / "frameworks"
FILES = sorted(FOLDER.glob("*_framework.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_framework_has_every_method_that_a_lane_calls(file):
    module = importlib.import_module(f"assay.frameworks.{file.stem}")
    (framework,) = (
        each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__
    )
    assert len(Framework.__abstractmethods__) > 10
    assert not framework.__abstractmethods__
    for name, own in inspect.getmembers(framework, inspect.isfunction):
        if asked := getattr(Framework, name, None) if not name.startswith("_") else None:
            parameters = inspect.signature(own).parameters
            assert len(parameters) == len(inspect.signature(asked).parameters), name


def test_numpy_is_an_example_of_one_file():
    root = FOLDER.parents[2]
    files = [*root.glob("python/**/*.py"), *root.glob("src/**/*.cc"), *root.glob("src/**/*.h")]
    assert len(files) > 200
    assert [file.name for file in files if "numpy" in file.name] == ["numpy_framework.py"]
    assert not [file for file in files if "numpy_framework" in file.read_text()]


class Plain:
    pass


class WithoutGradients:
    has_gradients = False


def test_a_framework_says_whether_it_differentiates():
    assert describe(Plain())["gradients"] is True
    assert describe(WithoutGradients())["gradients"] is False


def stats_of(reserved, allocated=0):
    return {
        "reserved_bytes": {"all": {"current": reserved}},
        "allocated_bytes": {"all": {"current": allocated}},
    }


@pytest.mark.parametrize(("kept", "given_back"), [(None, 0), (KEPT_BYTES, 0), (KEPT_BYTES + 1, 1)])
def test_a_lane_on_a_gpu_gives_back_what_is_more_than_it_may_keep(kept, given_back):
    stats = {} if kept is None else stats_of(kept)  # none before a first call
    calls = []
    lane = TorchFramework.__new__(TorchFramework)
    lane.torch = SimpleNamespace(
        cuda=SimpleNamespace(
            memory_stats_as_nested_dict=lambda: stats, empty_cache=lambda: calls.append("emptied")
        )
    )
    lane._on_gpu = True
    lane.release()
    assert len(calls) == given_back


# The first two are of an H100 with 79.18 GiB, PyTorch 2.11.
@pytest.mark.parametrize(
    ("said", "needed_kb"),
    [
        (
            "CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 79.18 GiB of "
            "which 13.98 GiB is free. Process 635 has 520.00 MiB memory in use. Including non-PyTorch "
            "memory, this process has 64.61 GiB memory in use. Of the allocated memory 64.00 GiB is "
            "allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.",
            80 << 20,
        ),
        (
            "CUDA out of memory. Tried to allocate 128.00 GiB. GPU 0 has a total capacity of 79.18 GiB of "
            "which 62.30 GiB is free. Of the allocated memory 512.00 MiB is allocated by PyTorch, and 0 "
            "bytes is reserved by PyTorch but unallocated.",
            (128 << 20) + (512 << 10),
        ),
        ("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory", 0),
    ],
)
def test_pytorch_says_what_a_call_lacks(said, needed_kb):
    framework = TorchFramework.__new__(TorchFramework)
    assert framework.out_of_memory(RuntimeError(said))
    assert framework.needed_kb(RuntimeError(said)) == needed_kb
    framework.torch = SimpleNamespace(
        cuda=SimpleNamespace(memory_stats_as_nested_dict=lambda: stats_of(2 << 20, allocated=1 << 20))
    )
    framework._on_gpu = True
    framework.release()  # 1 MiB is still there
    assert framework.needed_kb(RuntimeError(said)) == max(0, needed_kb - 1024)


def test_a_gpu_that_a_case_names_is_the_lanes_device():
    framework = TorchFramework.__new__(TorchFramework)  # without an import of PyTorch
    framework._device = "cpu"
    assert {name: framework.place(name) for name in ("cuda", "gpu:1", "cpu", "meta")} == {
        "cuda": "cpu", "gpu:1": "cpu", "cpu": "cpu", "meta": "meta",
    }  # fmt: skip
