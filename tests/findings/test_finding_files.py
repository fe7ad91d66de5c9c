"""Runs the script of every finding against the installed frameworks; checks schema and index."""

import ast
import dataclasses
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "findings"))

import known_faults  # noqa: E402, F401
import model  # noqa: E402
import pages  # noqa: E402
import runner  # noqa: E402

FINDINGS = model.load()
HERE = [each for each in FINDINGS if each.runs_here]


@pytest.fixture(scope="module")
def runs():
    return runner.run(HERE)


@pytest.mark.slow
@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_script_shows_the_bug_while_it_is_there(finding, runs):
    if not finding.runs_here:
        pytest.skip(f"needs one of {finding.devices} and {finding.cpu_features or 'nothing else'}")
    shows = finding.is_open and runner.installed_version(finding.framework) in finding.versions
    assert runs[finding.name].status == int(shows), runs[finding.name].output


# What a script's last statement decides by, besides `got` and `expected`: the line that makes it right.
RIGHT = {
    "sys.exit(not isinstance(got, str))": "got = 'the message of an error'",
    "sys.exit(hangs)": "hangs = False",
    "sys.exit(code != 0)": "code = 0",
    "sys.exit(process.exitcode < 0)": "import types; process = types.SimpleNamespace(exitcode=0)",
}


def repaired(script):
    """The script as if the framework were right, from before its last statement on; None for a script
    that ends without an exit, which only an exception of the framework leads to exit code 1."""
    *first, last = ast.parse(script).body
    if not ast.unparse(last).startswith("sys.exit("):
        return None
    right = RIGHT.get(ast.unparse(last), "got = expected")
    return ast.unparse(ast.Module([*first, *ast.parse(right).body, last], []))


@pytest.mark.slow
def test_the_script_can_show_that_the_bug_is_gone():
    right = {
        finding.name: dataclasses.replace(finding, script=script)
        for finding in HERE
        if (script := repaired(finding.script))
    }
    assert len(right) >= 0.9 * len(HERE)
    wrong = {name: run for name, run in runner.run(list(right.values())).items() if run.status != 0}
    assert not wrong, wrong


def test_the_index_is_current():
    assert (model.FOLDER / "README.md").read_text() == pages.index(FINDINGS)


@pytest.mark.parametrize(
    "change", [("title", "titel"), ("version = 1", "version = 2"), ("found = ", "found = 1 #")]
)
def test_a_broken_file_is_refused(tmp_path, change):
    text = (model.FOLDER / "paddle-relu-nan.toml").read_text().replace(*change, 1)
    (tmp_path / "paddle-relu-nan.toml").write_text(text)
    with pytest.raises(model.Invalid):
        model.load(tmp_path)


def test_a_file_name_is_a_slug(tmp_path):
    (tmp_path / "Relu.toml").write_text((model.FOLDER / "paddle-relu-nan.toml").read_text())
    with pytest.raises(model.Invalid, match="file name"):
        model.load(tmp_path)
