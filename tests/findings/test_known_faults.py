"""The shipped lists of known faults: each entry names the finding that explains it."""

import pytest
import tomllib
from test_finding_files import FINDINGS, model

FOLDER = model.ROOT / "python" / "assay" / "known_faults"
FILES = sorted(FOLDER.glob("*.toml"))
BY_FILE = {f"docs/findings/{each.name}.toml": each for each in FINDINGS}


def faults(file):
    return tomllib.loads(file.read_text())["fault"]


def test_there_is_a_list_for_each_framework():
    assert [file.stem for file in FILES] == ["paddle-3.3.1", "torch-2.11.0", "torch-2.13.0"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_entry_has_a_reason_and_the_finding_that_shows_it(file):
    framework, version = file.stem.split("-")
    for fault in faults(file):
        assert fault["reason"], fault
        finding = BY_FILE[fault["upstream"]]
        assert finding.framework == framework and version in finding.versions, fault
        assert finding.is_open, f"{finding.name} is fixed: remove its entries"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_entries_are_sorted_and_state_no_numbers(file):
    keys = [tuple(fault[key] for key in ("api", "outcome", "where", "how")) for fault in faults(file)]
    assert [key[0] for key in keys] == sorted(key[0] for key in keys)
    assert len(set(keys)) == len(keys)
    stated = set().union(*faults(file))
    assert stated <= {"api", "outcome", "where", "how", "values", "dtypes", "reason", "upstream"}
