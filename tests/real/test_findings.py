"""A failure on its way to an issue: one finding, made small, shown by a script that needs Paddle alone.

The faults are Paddle 3.3.1's own, each with its reason in docs/findings."""

import json
import math
import re
import subprocess

import pytest
from engine import run
from tree import ASSAY, ROOT

pytestmark = pytest.mark.slow

PADDLE = ROOT / ".venv" / "paddle" / "bin" / "python"

CASES = """\
paddle.nn.functional.log_softmax(Tensor([6, 17],"float32"), axis=-1, dtype=None, )
paddle.nn.functional.log_softmax(Tensor([5, 3, 40],"float32"), -1, )
paddle.nn.functional.silu(Tensor([4, 50],"float32"), )
paddle.abs(Tensor([3],"float32"), )
"""


def assay(*arguments, cwd=None):
    command = [ASSAY, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("findings")
    corpus = place / "cases.txt"
    corpus.write_text(CASES)
    found = run(place, corpus)
    assert sorted(found.values()).count("pass") == 1
    assay("shrink", place / "run", "--budget=120s")
    return place / "run"


def findings(folder):
    return json.loads(assay("report", folder, "--json"))["findings"]


def test_failures_that_show_in_the_same_way_are_one(folder):
    apis = {each["api"]: each["cases"] for each in findings(folder) if each["where"].startswith("result")}
    assert apis.get("paddle.nn.functional.log_softmax") == 2


def test_shrunk_cases_have_a_handful_of_elements(folder):
    shrunk = {each["api"]: each["shrunk"] for each in findings(folder)}
    for api in ("paddle.nn.functional.log_softmax", "paddle.nn.functional.silu"):
        extents = shrunk[api].split("[")[1].split("]")[0]
        assert math.prod(int(extent) for extent in extents.split(",") if extent.strip()) <= 8, shrunk
    assert "axis" not in shrunk["paddle.nn.functional.log_softmax"]


def test_a_case_is_shown_with_the_regimes_that_do_not_judge_it(folder):
    shown = json.loads(assay("show", folder, "abs", "--json"))
    skipped = {trial["values"]: trial["skipped"] for trial in shown["trials"] if "skipped" in trial}
    assert "infinity" in skipped["bulk"]


def test_the_script_shows_the_fault(folder):
    shown = set()
    for each in findings(folder):
        script = folder / f"finding{each['number']}.py"
        text = assay("finding", folder, each["number"], "--budget=0", "--script", script)
        assert each["api"] in text and "source of the expected result: " in text
        assert "PaddlePaddle 3.3.1, commit " in text
        assert "it exits with 1, so the fault shows" in text
        source = script.read_text()
        assert "assay" not in source and source.count("\n") <= 30
        assert exit_code(PADDLE, script) == 1
        # A build that computes the expected value.
        line = next(line for line in source.splitlines() if line.startswith("print("))
        script.write_text(source.replace(line, f"got = expected\n{line}", 1))
        assert exit_code(PADDLE, script) == 0
        shown.add(each["api"])
    assert shown == {"paddle.nn.functional.log_softmax", "paddle.nn.functional.silu"}


# No graph leads from the result of diag_embed to its input, and fill_diagonal_tensor gives no gradient of y.
LOST = """\
paddle.diag_embed(Tensor([1, 8], "float64"))
paddle.Tensor.fill_diagonal_tensor(Tensor([3, 3], "float32"), Tensor([2], "float32"), -1, 0, 1)
"""


def test_the_script_shows_a_lost_gradient(tmp_path):
    corpus = tmp_path / "cases.txt"
    corpus.write_text(LOST)
    run(tmp_path, corpus, "--values=usual")
    for each in findings(tmp_path / "run"):
        script = tmp_path / "script.py"
        text = assay("finding", tmp_path / "run", each["number"], "--budget=0", "--script", script)
        assert "it exits with 1, so the fault shows" in text, text
        assert (
            "got      None"
            in subprocess.run([PADDLE, script], capture_output=True, text=True, check=False).stdout
        )
        script.write_text(script.read_text().replace("got = gradients", "got = outputs or gradients"))
        assert exit_code(PADDLE, script) == 0
    assert len(findings(tmp_path / "run")) == 2


def exit_code(python, script):
    """Of a script that came to its end: an exception exits with 1, too."""
    done = subprocess.run([python, script], capture_output=True, text=True, check=False)
    assert "got " in done.stdout and "expected " in done.stdout, done.stdout + done.stderr
    return done.returncode


LANES = """version = 1
[lanes.new]
framework = "torch"
reference_functions = true
environment = ["SPECIAL=1"]
modules = ["colorsys"]
[lanes.old]
framework = "torch"
"""
CRASHES = """\
paddle.mode(Tensor([0, 3], "float32"), axis=0)
paddle.pdist(Tensor([0, 20], "float32"), 2.0)
"""


@pytest.mark.parametrize(
    "lanes, frameworks",
    [
        ((), {"paddle.mode": "paddle", "paddle.pdist": "torch"}),
        (("--test-lane=new", "--reference-lane=old"), {"paddle.pdist": "torch"}),
    ],
    ids=["reference lane", "PyTorch alone"],
)
def test_an_issue_is_about_the_framework_that_failed(tmp_path, lanes, frameworks):
    """PyTorch's pdist and Paddle's mode divide by zero rows (docs/findings)."""
    (tmp_path / "assay.toml").write_text(LANES)
    (tmp_path / "cases.txt").write_text(CRASHES)
    run(tmp_path, tmp_path / "cases.txt", "--values=usual", *lanes)
    found = {each["api"]: each["number"] for each in findings(tmp_path / "run") if "lane" in each["where"]}
    assert frameworks.keys() <= found.keys()
    for api, framework in frameworks.items():
        script = tmp_path / f"of_{framework}.py"
        text = assay("finding", tmp_path / "run", found[api], "--budget=0", "--script", script, cwd=tmp_path)
        other = "paddle" if framework == "torch" else "torch"
        source = script.read_text()
        assert f"import {framework}" in source and f"import {other}" not in source
        assert ("PyTorch 2.13.0" in text) == (framework == "torch")
        assert "it exits with 1, so the fault shows" in text
        # What the lane has beside its framework may be the cause.
        of_lane = bool(lanes)
        assert ("lane new, environment `SPECIAL=1`, with colorsys" in text) == of_lane
        assert ("import colorsys" in source) == of_lane
        assert exit_code(ROOT / ".venv" / framework / "bin" / "python", script) == 1
        # A build that has repaired it.
        body = re.sub(r"def call\(\):\n(    .*\n)+", "def call():\n    pass\n", source)
        script.write_text(body)
        assert exit_code(ROOT / ".venv" / framework / "bin" / "python", script) == 0
