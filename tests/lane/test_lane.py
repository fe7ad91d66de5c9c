"""What a lane does to results, errors and names, without a framework."""

import _frozen_importlib
import builtins
import os
import types
from contextlib import nullcontext

import pytest
from assay import compilers, lane, truth, wire
from assay.bugs import note_bug
from assay.call import drawn_gradient
from assay.draw_distribution import either, kept
from assay.frameworks import look_up
from assay.lane import describe_error
from assay.names import callable_name, public_name
from assay.registry import DUNDERS
from assay.wire import Stop


class Tensor:
    def __init__(self, shape=(2,), dtype="float32"):
        self.shape, self.dtype = shape, dtype


def test_gradients_of_drawn_outputs_are_drawn():
    gradient, other = Tensor((4,), "float16"), Tensor((4,), "float16")
    for distribution in (kept(Tensor((2, 3)), 0.5, 6), either(Tensor((2, 3)), 1.0, 0.5, 6)):
        assert drawn_gradient(distribution, gradient, None) == ("kept", (gradient, 0.5, 6), (4,), "float16")
        assert drawn_gradient(distribution, None, None) is None
    assert drawn_gradient(distribution, gradient, other) == (
        "either",
        (gradient, other, 0.5, 6),
        (4,),
        "float16",
    )
    assert drawn_gradient(distribution, None, other) == ("either", (0.0, other, 0.5, 6), (4,), "float16")


def test_errors_are_told_in_one_text():
    assert describe_error(ValueError("bad axis")) == "ValueError: bad axis"
    assert describe_error(Stop(wire.REFUSED, "private")) == "private"
    paddle = "\n\n---\nC++ Traceback\n0 frame\n---\nError Message Summary:\n----\nInvalidArgument: x\n"
    assert describe_error(RuntimeError(paddle)) == "RuntimeError: InvalidArgument: x"
    try:
        raise KeyError("a") from OSError("b")
    except KeyError as error:
        assert describe_error(error) == "KeyError: 'a' (from OSError: b)"
    assert len(describe_error(ValueError("x" * 100_000))) <= lane.MAX_MESSAGE


class Mute(Exception):
    def __str__(self):
        raise SystemExit("no text")


def test_an_error_that_cannot_tell_itself_has_a_text():
    assert describe_error(Mute()) == "Mute: its message cannot be read: SystemExit"
    assert describe_error(SystemExit(0)) == "SystemExit: 0"


def test_begin_and_end_of_a_long_message_are_kept():
    long = "first" + "x" * (1 << 24) + "Error Message Summary: last"
    assert len(wire.text_of(ValueError(long))) < 1 << 17
    assert describe_error(ValueError(long)) == "ValueError: last"


def caught(function):
    try:
        function()
    except Exception as error:
        return error


def test_a_bug_of_assay_is_noted_and_a_refusal_is_not(capfd):
    note_bug("paddle.abs", caught(lambda: public_name()))  # the caller is no part of assay
    note_bug("paddle.abs", caught(lambda: public_name("paddle._legacy")))
    assert capfd.readouterr().err == ""
    note_bug("paddle.abs", caught(lambda: public_name(3)))
    noted = capfd.readouterr().err
    assert noted.startswith("assay: BUG: paddle.abs: AttributeError: ") and "names.py" in noted


def no_memory(_):
    raise MemoryError


@pytest.mark.parametrize(("failure", "truth"), [(no_memory, None), (lambda _: public_name(3), [])])
def test_a_lack_of_memory_is_no_lack_of_a_truth(failure, truth, monkeypatch):
    monkeypatch.setattr(lane, "evaluations", failure)
    framework = types.SimpleNamespace(out_of_memory=lambda error: isinstance(error, MemoryError))
    call = types.SimpleNamespace(job=types.SimpleNamespace(api="paddle.abs"))
    assert lane.Lane._truth(types.SimpleNamespace(framework=framework), call) == truth


def test_what_a_call_imports_is_no_time_of_the_case(tmp_path, monkeypatch):
    """Such as the first step of an optimizer."""
    (tmp_path / "first_needs.py").write_text("import first_needs_too")
    (tmp_path / "first_needs_too.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compilers, "_watched", set())
    monkeypatch.setattr("_frozen_importlib._find_and_load", _frozen_importlib._find_and_load)
    told = []
    compilers.watch(types.SimpleNamespace(compiling=told.append))
    for _ in range(2):
        import first_needs  # noqa: F401
    assert told == [True, True, False, False]


@pytest.mark.parametrize("looked_at", ["truth", "beside the truth"])
def test_a_bug_in_the_truth_is_noted(looked_at, monkeypatch, capfd):
    call = types.SimpleNamespace(job=types.SimpleNamespace(api="paddle.abs"))
    if looked_at == "truth":
        monkeypatch.setattr(lane, "evaluations", lambda of: public_name(3))
        framework = types.SimpleNamespace(out_of_memory=lambda _: False)
        assert lane.Lane._truth(types.SimpleNamespace(framework=framework), call) == []
    else:
        monkeypatch.setattr(truth, "Widened", lambda *_: public_name(3))
        assert truth._shown(call, None, None, nullcontext()) == []
    assert "assay: BUG: paddle.abs: AttributeError: " in capfd.readouterr().err


@pytest.mark.parametrize(
    "name",
    ["paddle.abs", "paddle.nn.functional.relu_", "paddle.Tensor.__getitem__", "paddle.Tensor.__radd__"],
)
def test_public_names_are_themselves(name):
    assert public_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "paddle._C_ops.add",
        "paddle._legacy",
        "paddle.abs.__globals__",
        "paddle.__builtins__",
        "paddle.Tensor.__class__",
        "paddle.Tensor.__init_subclass__",
        "paddle.Tensor.__reduce__",
        "paddle.Tensor.__add__.__self__",
        "paddle.Tensor.__getattribute__",
    ],
)
def test_private_names_are_refused(name):
    with pytest.raises(Stop) as refused:
        public_name(name)
    assert refused.value.status == wire.REFUSED


@pytest.mark.parametrize(
    "name",
    [
        "paddle.load",
        "paddle.save",
        "paddle.hub.load",
        "paddle.utils.cpp_extension.load",
        "paddle.amp.core.run_cmd",
        "paddle.base.core.shell_execute_cmd",
        "paddle.utils.run_check",
        "paddle.vision.ops.read_file",
        "paddle.vision.models.resnet18",
        "paddle.enable_static",
        "paddle.set_flags",
        "torch.hub.load",
        "torch.ops.load_library",
    ],
)
def test_what_is_no_function_of_tensors_is_refused(name):
    with pytest.raises(Stop) as refused:
        callable_name(name)
    assert refused.value.status == wire.REFUSED


@pytest.mark.parametrize("name", ["paddle.rand", "paddle.Tensor.__add__", "paddle.linalg.svd", "torch.abs"])
def test_functions_of_tensors_may_be_called(name):
    assert callable_name(name) == name


def test_what_a_framework_imports_is_none_of_its_apis():
    framework = types.ModuleType("framework")
    framework.nn = types.ModuleType("framework.nn")
    framework.os = os
    framework.nn.getcwd = os.getcwd
    framework.builtins = builtins

    def relu(x):
        return x

    relu.__module__ = "framework.nn"
    framework.nn.relu = relu
    framework.Tensor = type("Tensor", (), {"__module__": "framework", "abs": str.upper})
    assert look_up(framework, "framework.nn.relu") is relu
    assert look_up(framework, "framework.Tensor.abs") is str.upper  # as a method written in C
    for name in ("os.system", "os.path.join", "nn.getcwd", "builtins.eval", "os"):
        with pytest.raises(Stop) as refused:
            look_up(framework, f"framework.{name}")
        assert refused.value.status == wire.REFUSED
    with pytest.raises(AttributeError):
        look_up(framework, "framework.nothing")


def test_no_dunder_reaches_beyond_arithmetic():
    for name in (
        "class",
        "dict",
        "globals",
        "reduce",
        "getattribute",
        "subclasses",
        "import",
        "call",
        "init",
    ):
        assert f"__{name}__" not in DUNDERS
