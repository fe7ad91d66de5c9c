"""The demo's cases, and what the READMEs say of them."""

import re

INVALID = "float33"


def cases(source):
    lines = source("examples/api_configs.txt").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def names(source):
    return {case.split("(")[0] for case in cases(source)}


def test_there_are_many_of_many_apis(source):
    assert len(cases(source)) >= 300
    assert len({case.replace(" ", "") for case in cases(source)}) == len(cases(source))
    assert len(names(source)) >= 100


def test_every_kind_of_outcome_has_a_case(source, apis):
    all_cases = cases(source)
    assert 'paddle.pdist(Tensor([0, 20],"float32"), 2.0, )' in all_cases  # kills PyTorch's backward
    assert any(case.startswith("paddle.nn.functional.dropout(") for case in all_cases)
    assert [INVALID in case for case in all_cases].count(True) == 1
    assert [name in apis for name in names(source)].count(False) == 1  # no reference is known for it


def test_the_readmes_count_them(source):
    real = len(cases(source)) - 1
    counts = {"README.md": r"runs (\d+) real cases", "README.zh-CN.md": r"运行 (\d+) 个真实用例"}
    for readme, pattern in counts.items():
        assert re.search(pattern, source(readme)).group(1) == str(real)
