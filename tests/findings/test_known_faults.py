"""The lists of known faults, which are generated from the findings."""

import dataclasses

import pytest
import tomllib
from test_finding_files import FINDINGS, known_faults, model

FINDING = next(each for each in FINDINGS if each.name == "torch-remainder-large-quotient")
FAULT = model.Fault("mismatch", "result", "value")


def written(folder, *faults):
    """The list of PyTorch 2.13.0 if a single finding had these faults."""
    known_faults.write([dataclasses.replace(FINDING, fault=list(faults))], folder)
    return tomllib.loads((folder / "torch-2.13.0.toml").read_text()).get("fault", [])


@pytest.mark.parametrize("name", known_faults.SETTINGS)
def test_a_list_states_each_fault_once_and_sorted(name):
    keys = [[fault[key] for key in known_faults.KEY] for fault in known_faults.entries(FINDINGS, name)]
    assert len(keys) >= 30 and keys == sorted(keys)
    assert [key for key, following in zip(keys, keys[1:], strict=False) if key == following] == []


def test_an_entry_takes_from_its_finding_what_the_fault_does_not_state(tmp_path):
    entry = {"api": FINDING.api, "outcome": "mismatch", "where": "result", "how": "value"}
    entry |= {"reason": FINDING.title, "upstream": f"docs/findings/{FINDING.name}.toml"}
    assert written(tmp_path, FAULT) == [entry]
    more = dataclasses.replace(FAULT, how='a "\\', values=["nan"], apis=["torch.b", "torch.a"], reason="why")
    own = {"how": 'a "\\', "values": ["nan"], "reason": "why"}
    assert written(tmp_path, more) == [entry | own | {"api": api} for api in ("torch.a", "torch.b")]


def test_a_fault_is_in_the_lists_of_its_versions(tmp_path):
    assert written(tmp_path, dataclasses.replace(FAULT, versions=["2.11.0"])) == []
    assert tomllib.loads((tmp_path / "torch-2.11.0.toml").read_text())["fault"]


def test_a_fault_of_a_version_without_a_list_is_not_lost(tmp_path):
    finding = dataclasses.replace(FINDING, versions=["9.0"], fault=[FAULT])
    with pytest.raises(model.Invalid, match=r"torch-9\.0"):
        known_faults.write([finding], tmp_path)
