"""The ways to execute a call, without a framework."""

from contextlib import contextmanager

import pytest
from assay.execution import Execution, names
from assay.wire import REFUSED, SKIPPED, Stop


class Able:
    """A framework that notes what it is asked for."""

    name, version = "able", "1.0"

    def __init__(self):
        self.notes = []

    @contextmanager
    def autocast(self):
        self.notes.append("mixed")
        yield
        self.notes.append("no longer mixed")

    def compiled(self, function, api):
        def call(*args, **kwargs):
            self.notes.append(f"compiled {api}")
            return function(*args, **kwargs)

        return call

    def exported(self, function, api):
        return function

    def batched(self, function, args, kwargs):
        self.notes.append("batched")
        return function(*args, **kwargs)

    def be_deterministic(self):
        self.notes.append("deterministic")

    def use_threads(self, count):
        self.notes.append(f"{count} threads")


class Unable:
    name, version = "unable", "2.0"


def twice_as_much(x):
    return 2 * x


def test_every_file_is_a_way():
    known = "amp compile deterministic eager export relation require threads timed to_static twice vmap"
    assert names() == tuple(known.split())
    for name in set(names()) - {"relation", "require"}:  # they need tensors (tests/real)
        setting = "=2" if name == "threads" else ""
        assert Execution(name + setting, Able()).wrap(twice_as_much, "paddle.twice")(21) == 42


def test_eager_execution_costs_nothing():
    eager = Execution("eager", Unable())
    assert eager.wrap(twice_as_much, "paddle.twice") is twice_as_much
    assert eager.runs == 1
    assert eager.in_place


def test_ways_are_joined_the_innermost_first():
    framework = Able()
    execution = Execution("amp+to_static+twice", framework)
    assert execution.wrap(twice_as_much, "paddle.twice")(1) == 2
    assert framework.notes == ["compiled paddle.twice", "mixed", "no longer mixed"]
    assert execution.runs == 2
    assert not execution.in_place


@pytest.mark.parametrize("name", ["amp", "to_static", "twice+amp"])
def test_what_a_framework_cannot_do_skips_the_case(name):
    with pytest.raises(Stop) as stopped:
        Execution(name, Unable()).wrap(twice_as_much, "paddle.twice")
    assert stopped.value.status == SKIPPED
    assert "unable 2.0 has no" in str(stopped.value)


@pytest.mark.parametrize("name", ["", "static", "os", "eager+", "..frameworks", "__init__"])
def test_unknown_ways_are_refused(name):
    with pytest.raises(Stop) as stopped:
        Execution(name, Unable())
    assert stopped.value.status == REFUSED


def test_a_setting_follows_an_execution():
    able = Able()
    Execution("threads=4+deterministic", able).wrap(twice_as_much, "torch.abs")
    assert able.notes == ["4 threads", "deterministic"]
    for wrong in ("threads=0", "threads=many", "threads", "vmap=2"):
        with pytest.raises(Stop):
            Execution(wrong, able).wrap(twice_as_much, "torch.abs")
