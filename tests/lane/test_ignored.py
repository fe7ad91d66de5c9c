"""Parameters that references do not read: each has a reason, and makes a case unsupported if it counts."""

import pytest
from assay.ignored import ignored_by, is_inert, unread
from assay.registry import Registry, load_all


@pytest.fixture(scope="module")
def apis():
    return load_all()


def test_every_parameter_is_read_or_has_a_reason(apis):
    silent = {name: unread(entry) - set(entry.ignores) for name, entry in apis.items()}
    silent = {name: {p for p in left if not is_inert(apis[name], p)} for name, left in silent.items()}
    assert {name: left for name, left in silent.items() if left} == {}


def test_what_is_said_to_be_ignored_is_not_read(apis):
    assert {name: set(e.ignores) - unread(e) for name, e in apis.items() if set(e.ignores) - unread(e)} == {}


def test_what_a_reference_reads_is_seen_through_wrappers():
    table = Registry()
    table.api("paddle.f")(lambda x, axis=0, name=None: x)
    table.api("paddle.g", signature="x, axis=0")(lambda x: x)
    table.same("x, axis=0, out=None", "paddle.h")

    @table.api("paddle.k")
    def inner(x, axis=0):
        return (lambda: x + axis)()

    assert {name: unread(entry) for name, entry in table.items()} == {
        "paddle.f": {"axis", "name"}, "paddle.g": {"axis"}, "paddle.h": {"out"}, "paddle.k": set()
    }  # fmt: skip


def test_another_value_than_the_default_is_not_covered(apis):
    lstm = apis["paddle.nn.LSTM"]
    assert ignored_by(lstm, {"input_size": 4, "hidden_size": 8, "proj_size": 3}) == (
        "the reference ignores proj_size: the hidden state is not projected"
    )
    assert ignored_by(lstm, {"input_size": 4, "hidden_size": 8, "proj_size": 0, "dropout": 0.0}) == ""
    assert ignored_by(apis["paddle.optimizer.AdamW"], {"lr_ratio": 0.5})
