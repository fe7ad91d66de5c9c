"""The table of APIs: what may be registered, and how arguments reach a reference of the same name."""

from types import SimpleNamespace

import pytest
from assay import reference
from assay.registry import Registry, changes_input
from assay.rules import integers


@pytest.fixture
def table():
    return Registry()


@pytest.fixture
def calls(monkeypatch):
    """A torch that notes how it was called."""
    noted = []

    def function(*args, **kwargs):
        noted.append((args, kwargs))
        return "result"

    functional = SimpleNamespace(relu=function)
    torch = SimpleNamespace(abs=function, add=function, nn=SimpleNamespace(functional=functional))
    monkeypatch.setattr(reference, "torch", torch)
    return noted


def test_same_hands_on_by_position(table, calls):
    table.same("x, y, alpha=1, name=None", "paddle.add paddle.Tensor.add_")
    call = table["paddle.add"].call
    assert call(1, 2) == "result"
    call(1, y=2, alpha=3)
    call(alpha=3, y=2, x=1)
    call(1, 2, name="n")
    call(1, 2, 3, "n")
    assert [args for args, _ in calls] == [(1, 2, 1), (1, 2, 3), (1, 2, 3), (1, 2, 1), (1, 2, 3)]
    calls.clear()
    table["paddle.Tensor.add_"].call(1, 2)  # the reference of an in-place name is the plain one
    assert calls == [((1, 2, 1), {})]


@pytest.mark.parametrize("kwargs", [{"alpha": 3}, {"x": 1}, {"unknown": 1}, {"y": 2, "axis": 0}])
def test_same_refuses_gaps_doubles_and_strangers(table, calls, kwargs):
    table.same("x, y, alpha=1, name=None", "paddle.add")
    with pytest.raises(TypeError):
        table["paddle.add"].call(1, **kwargs)
    assert calls == []


def test_same_ignores_a_place_for_the_result(table, calls):
    table.same("x, name=None", "paddle.abs")
    table["paddle.abs"].call(1, out=None, name="n")
    assert calls == [((1,), {})]


def test_same_strips_what_makes_an_operator_work_in_place(table, calls):
    reference.torch.Tensor = SimpleNamespace(__add__=reference.torch.add)
    table.same("x, y", "paddle.Tensor.__iadd__ paddle.Tensor.__add__", home="torch.Tensor")
    table["paddle.Tensor.__iadd__"].call(1, 2)
    table["paddle.Tensor.__add__"].call(3, 4)
    assert calls == [((1, 2), {}), ((3, 4), {})]
    assert table["paddle.Tensor.__iadd__"].changes == "x"


def test_same_looks_in_another_home(table, calls):
    table.same("x, name=None", "paddle.nn.functional.relu", home="torch.nn.functional")
    assert table["paddle.nn.functional.relu"].call(5) == "result"


def test_without_torch_the_tables_import_and_no_reference_is_called(table):
    assert reference.torch is None
    table.same("x, name=None", "paddle.abs")
    with pytest.raises(AttributeError):
        table["paddle.abs"].call(1)


def test_twice_is_an_error(table):
    table.api("paddle.f")(lambda x: x)
    with pytest.raises(ValueError, match="paddle.f is registered twice"):
        table.api("paddle.g", "paddle.f")(lambda x: x)
    with pytest.raises(ValueError, match="twice"):
        table.same("x", "paddle.f")


def test_unknown_equality_is_an_error(table):
    with pytest.raises(ValueError, match="unknown equality: close"):
        table.api("paddle.f", equal=("value", "close"))(lambda x: x)
    table.api("paddle.g", equal="sign")(lambda x: x)
    assert table["paddle.g"].equal == ("sign",)


def test_rules_must_name_parameters(table):
    with pytest.raises(ValueError, match="'y' names no parameter"):
        table.api("paddle.f", y=integers(0, 1))(lambda x: x)
    with pytest.raises(ValueError, match="'y' names no parameter"):
        table.same("x, name=None", "paddle.f", y=integers(0, 1))
    # `rules` takes a parameter whose name is an option of api().
    table.api("paddle.f", rules={"skip": integers(0, 1)})(lambda x, skip: x)
    assert "skip" in table["paddle.f"].rules and not table["paddle.f"].skip
    with pytest.raises(ValueError, match="must be a tuple of parameters"):
        table.api("paddle.g", updates=integers(0, 1))(lambda x, updates: x)
    with pytest.raises(ValueError, match="must be a tuple of parameters"):
        table.api("paddle.g", updates=("y",))(lambda x: x)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("paddle.add_", True),
        ("paddle.Tensor.add_", True),
        ("paddle.add", False),
        ("paddle.Tensor.__iadd__", True),
        ("paddle.Tensor.__ilshift__", True),
        ("paddle.Tensor.__setitem__", True),
        ("paddle.Tensor.__getitem__", False),
        ("paddle.Tensor.__add__", False),
        ("paddle.Tensor.__invert__", False),
        ("paddle.Tensor.__index__", False),
        ("paddle.Tensor.__int__", False),
        ("paddle.Tensor.__iter__", False),
    ],
)
def test_names_that_work_in_place(table, name, expected):
    assert changes_input(name) is expected
    table.api(name)(lambda x, y: x)
    assert table[name].changes == ("x" if expected else "")


def test_changes_may_be_said(table):
    table.api("paddle.f", changes="out")(lambda x, out: x)
    assert table["paddle.f"].changes == "out"
