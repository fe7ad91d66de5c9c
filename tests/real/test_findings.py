"""A failure on its way to an issue: one finding, made small, shown by a script that needs Paddle alone.

The faults are Paddle 3.3.1's own, each with its reason in docs/findings."""

import json
import math
import subprocess

import pytest

from engine import ASSAY, ROOT, run

PADDLE = ROOT / ".venv" / "paddle" / "bin" / "python"

CASES = """\
paddle.nn.functional.log_softmax(Tensor([6, 17],"float32"), axis=-1, dtype=None, )
paddle.nn.functional.log_softmax(Tensor([5, 3, 40],"float32"), -1, )
paddle.nn.functional.silu(Tensor([4, 50],"float32"), )
paddle.abs(Tensor([3],"float32"), )
"""


def assay(*arguments):
    done = subprocess.run([ASSAY, *map(str, arguments)], capture_output=True, text=True, check=False)
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


def test_the_script_shows_the_fault(folder):
    shown = set()
    for each in findings(folder):
        script = folder / f"finding{each['number']}.py"
        text = assay("finding", folder, each["number"], "--script", script)
        assert each["api"] in text and "source of the right result: " in text
        source = script.read_text()
        assert "assay" not in source and source.count("\n") <= 20
        printed = subprocess.run([PADDLE, script], capture_output=True, text=True, check=True).stdout
        lines = dict(line.split(maxsplit=1) for line in printed.splitlines())
        got, expected = float(lines["got"]), float(lines["expected"])
        assert not math.isclose(got, expected, rel_tol=1e-5), printed
        shown.add(each["api"])
    assert shown == {"paddle.nn.functional.log_softmax", "paddle.nn.functional.silu"}
