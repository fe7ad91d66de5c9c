"""The lists of known faults that `--against=known` reads: one file for each framework and version."""

import json
import pathlib

from model import Finding, Invalid

# The settings of the runs that showed the faults, by list. With PyTorch, assay takes PyTorch in float64 for
# the truth, so that some of its faults read as mismatches of the test lane.
SETTINGS = {
    "paddle-3.3.1": {"test.device": "cpu"},
    "torch-2.11.0": {"reference.device": "cpu", "test.device": "gpu"},
    "torch-2.13.0": {"reference.device": "cpu"},
}
KEY = ("api", "outcome", "where", "how")
HEAD = """\
# Known faults of {}, by API, generated from docs/findings. `upstream` names the file whose script shows one.
version = 2

[settings]
"""


def entries(findings: list[Finding], name: str) -> list[dict[str, str | list[str]]]:
    """The faults of one list, sorted, with the keys of a baseline."""
    framework, version = name.split("-")
    found = []
    for finding in findings:
        for fault in finding.fault if finding.framework == framework else []:
            if version not in (fault.versions or finding.versions):
                continue
            for api in fault.apis or [finding.api]:
                entry: dict[str, str | list[str]] = {"api": api}
                entry |= {key: getattr(fault, key) for key in KEY[1:]}
                entry |= {key: value for key in ("values", "dtypes") if (value := getattr(fault, key))}
                entry["reason"] = fault.reason or finding.title
                entry["upstream"] = f"docs/findings/{finding.name}.toml"
                found.append(entry)
    return sorted(found, key=lambda entry: [entry[key] for key in KEY])


def toml(value: str | list[str]) -> str:
    """A string or a list of strings as TOML, which writes both as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def text(findings: list[Finding], name: str) -> str:
    """The file of one list."""
    lines = [f"{toml(key)} = {toml(value)}" for key, value in SETTINGS[name].items()]
    for entry in entries(findings, name):
        lines += ["", "[[fault]]", *(f"{key} = {toml(value)}" for key, value in entry.items())]
    return HEAD.format(name) + "\n".join(lines) + "\n"


def write(findings: list[Finding], folder: pathlib.Path) -> None:
    """Writes all lists. Raises Invalid for a fault of a version whose list SETTINGS does not have."""
    for finding in findings:
        for version in finding.versions if finding.fault else []:
            if (name := f"{finding.framework}-{version}") not in SETTINGS:
                raise Invalid(f"{finding.name}.toml: fault: tools/findings has no list {name}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETTINGS:
        (folder / f"{name}.toml").write_text(text(findings, name))
