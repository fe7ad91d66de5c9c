"""engineV4's flags with its meaning, on the installed frameworks."""

import csv

import pytest
from engine import run

WIDE = (
    'paddle.addmm(Tensor([3, 3], "float64"), Tensor([3, 3], "float64"), Tensor([3, 3], "float64"), 0.7, 0.3)'
)
ABS, EXP = 'paddle.abs(Tensor([64], "float32"))', 'paddle.exp(Tensor([64], "float32"))'


def outcomes(folder, cases, *flags):
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(cases) + "\n")
    found = run(folder, corpus, "--values=usual", *flags)
    return [found[case] for case in cases]


def thresholds(folder, **apis):
    text = "manual_threshold_config:\n" + "".join(f"  paddle.{api}: {pair}\n" for api, pair in apis.items())
    (folder / "thresholds.yaml").write_text(text)
    return f"--manual_threshold_config_file={folder / 'thresholds.yaml'}"


@pytest.mark.slow
def test_a_threshold_replaces_the_bar_of_its_api_only(tmp_path):
    """Paddle's addmm rounds its factors to float32: 1e-8 off, which is beyond any error bar of float64."""
    (tmp_path / "a").mkdir()
    assert outcomes(tmp_path / "a", [WIDE, ABS]) == ["mismatch", "pass"]
    flag = thresholds(tmp_path, addmm=[1e-6, 1e-6])
    (tmp_path / "b").mkdir()
    assert outcomes(tmp_path / "b", [WIDE, ABS], flag) == ["pass", "pass"]
    (tmp_path / "c").mkdir()
    flag = thresholds(tmp_path, abs=[1, 1])
    assert outcomes(tmp_path / "c", [WIDE, ABS], flag) == ["mismatch", "pass"]


@pytest.mark.slow
def test_bitwise_runs_tell_how_far_each_api_is(tmp_path):
    found = outcomes(tmp_path, [ABS, EXP], "--bitwise_alignment=True")
    table = list(csv.DictReader((tmp_path / "run/bitwise.csv").open()))
    rows = {(row["API"], row["mode"]): row for row in table}
    same = rows["paddle.abs", "forward"]
    assert (same["tensors"], same["equal_tensors"], same["elements"]) == ("1", "1", "64")
    assert float(same["equal_share"]) == 1 and same["ulps_max"] == "0"
    of_exp = [rows["paddle.exp", mode] for mode in ("forward", "backward")]
    for row in of_exp:
        assert (row["equal_elements"] == "64") == (row["ulps_max"] == "0")
        assert int(row["ulps_99_percent"]) <= int(row["ulps_max"]) < 16
    equal = all(row["ulps_max"] == "0" for row in of_exp)
    assert found == ["pass", "pass" if equal else "mismatch"]
