"""Every framework has all that a lane asks of one."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from assay.frameworks.torch_framework import KEPT_BYTES, TorchFramework
from assay.server import describe

FOLDER = Path(__file__).parents[2] / "python" / "assay" / "frameworks"
FILES = sorted(FOLDER.glob("*_framework.py"))


def classes(file):
    return [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]


def methods(node):
    return {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_framework_has_every_method_of_the_protocol(file):
    protocol = next(node for node in classes(FOLDER / "__init__.py") if node.name == "Framework")
    (framework,) = (node for node in classes(file) if node.name.endswith("Framework"))
    wanted, found = methods(protocol), methods(framework)
    assert len(wanted) > 20  # the protocol is really read
    assert set(wanted) - set(found) == set()
    for name, asked in wanted.items():
        arguments = [argument.arg for argument in found[name].args.args]
        assert len(arguments) == len(asked.args.args), f"{name}({', '.join(arguments)})"


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


@pytest.mark.parametrize(("kept", "given_back"), [(None, 0), (KEPT_BYTES, 0), (KEPT_BYTES + 1, 1)])
def test_a_lane_on_a_gpu_gives_back_what_is_more_than_it_may_keep(kept, given_back):
    stats = {} if kept is None else {"reserved_bytes": {"all": {"current": kept}}}  # none before a first call
    calls = []
    lane = TorchFramework.__new__(TorchFramework)
    lane.torch = SimpleNamespace(
        cuda=SimpleNamespace(
            memory_stats_as_nested_dict=lambda: stats, empty_cache=lambda: calls.append("emptied")
        )
    )
    lane._device = "cuda:0"
    lane.release()
    assert len(calls) == given_back
