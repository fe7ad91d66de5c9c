"""Runs the script of every finding against the installed frameworks; checks schema and index."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "findings"))

import model  # noqa: E402
import pages  # noqa: E402
import runner  # noqa: E402

FINDINGS = model.load()


@pytest.fixture(scope="module")
def runs():
    return runner.run([each for each in FINDINGS if "cpu" in each.devices])


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.name)
def test_the_script_shows_the_bug_while_it_is_there(finding, runs):
    if "cpu" not in finding.devices:
        pytest.skip("needs a GPU")
    shows = finding.is_open and runner.installed_version(finding.framework) in finding.versions
    assert runs[finding.name].status == int(shows), runs[finding.name].output


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
