"""Known deviations: data beside the API, and the page that is made of it."""

import pytest
from assay import known_deviation_page
from assay.known_deviation import avoids, follows
from assay.registry import Registry


def test_the_page_is_current(apis, source):
    made = known_deviation_page.page(apis)
    # To write it again: python -m assay.known_deviation_page docs/reference/known-deviations.md
    assert source("docs/reference/known-deviations.md") == made


def test_findings_are_findings(apis, source):
    named = {each.finding for api in apis.values() for each in api.known_deviations if each.finding}
    assert len(named) > 10
    assert all(source(f"docs/findings/{name}.toml") for name in named)


def test_each_is_said_in_words(apis):
    for name, api in apis.items():
        for each in api.known_deviations:
            assert each.kind in ("follows", "avoids") and len(each.what) > 15, name


def test_second_names_and_layers_have_the_same_known_deviations():
    table = Registry()
    table.api("paddle.f", known_deviation=follows("0 where there is none"))(lambda x: x)
    table.api("paddle.g", known_deviation=(follows("this and that"), avoids("a crash")))(lambda x: x)
    table.alias("paddle.f", "paddle.Tensor.f_")
    table.layer("paddle.nn.F", inputs="x", like="paddle.f")(lambda name=None: None)
    table.settle()
    for name in ("paddle.f", "paddle.Tensor.f_", "paddle.nn.F"):
        assert table[name].known_deviations == (follows("0 where there is none"),)
    assert known_deviation_page.told(table)["paddle.g"] == ["follows: this and that", "avoids: a crash"]


@pytest.mark.parametrize("name", ["paddle.max", "paddle.Tensor.min", "paddle.nn.Hardshrink", "paddle.gcd_"])
def test_some_that_are_known(apis, name):
    assert apis[name].known_deviations


def test_what_only_looks_like_it(apis):
    assert not apis["paddle.amax"].known_deviations and not apis["paddle.abs"].known_deviations
