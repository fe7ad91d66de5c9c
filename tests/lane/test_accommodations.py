"""What the tables accommodate: data beside the API, and the page that is made of it."""

import pytest
from assay import accommodated
from assay.accommodations import avoids, follows
from assay.registry import Registry


def test_the_page_is_current(apis, source):
    made = accommodated.page(apis)
    # To write it again: python -m assay.accommodated docs/reference/known-deviations.md
    assert source("docs/reference/known-deviations.md") == made


def test_findings_are_findings(apis, source):
    named = {each.finding for api in apis.values() for each in api.accommodates if each.finding}
    assert len(named) > 10
    assert all(source(f"docs/findings/{name}.toml") for name in named)


def test_each_is_said_in_words(apis):
    for name, api in apis.items():
        for each in api.accommodates:
            assert each.kind in ("follows", "avoids") and len(each.what) > 15, name


def test_second_names_and_layers_accommodate_the_same():
    table = Registry()
    table.api("paddle.f", accommodates=follows("0 where there is none"))(lambda x: x)
    table.api("paddle.g", accommodates=(follows("this and that"), avoids("a crash")))(lambda x: x)
    table.alias("paddle.f", "paddle.Tensor.f_")
    table.layer("paddle.nn.F", inputs="x", like="paddle.f")(lambda name=None: None)
    table.settle()
    for name in ("paddle.f", "paddle.Tensor.f_", "paddle.nn.F"):
        assert table[name].accommodates == (follows("0 where there is none"),)
    assert accommodated.told(table)["paddle.g"] == ["follows: this and that", "avoids: a crash"]


@pytest.mark.parametrize("name", ["paddle.max", "paddle.Tensor.min", "paddle.nn.Hardshrink", "paddle.gcd_"])
def test_some_that_are_known(apis, name):
    assert apis[name].accommodates


def test_what_only_looks_like_it(apis):
    assert not apis["paddle.amax"].accommodates and not apis["paddle.abs"].accommodates
