"""The finding files of docs/findings: their schema, read and checked."""

import datetime
import os
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any

import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "findings"

FRAMEWORKS = {"paddle": "PaddlePaddle", "torch": "PyTorch"}
DEVICES = ("cpu", "gpu")
REGIMES = ("usual", "wide", "nan", "infinity", "bulk", "exact", "layout", "constant")
OUTCOMES = ("mismatch", "crash", "timeout", "oom", "sanitizer", "test_error", "reference_error", "unstable")
MOST_SCRIPT_LINES = 30


class Invalid(Exception):
    """A finding file that breaks the schema; the message names the file and the key."""


@dataclass(frozen=True)
class Fault:
    """How assay reports the finding: the entries of the lists of known faults."""

    outcome: str
    where: str
    how: str
    values: list[str] = field(default_factory=list)  # any if empty, as in a baseline
    dtypes: list[str] = field(default_factory=list)
    apis: list[str] = field(default_factory=list)  # the finding's API if empty
    versions: list[str] = field(default_factory=list)  # the finding's if empty
    reason: str = ""  # the finding's title if empty


@dataclass(frozen=True)
class Finding:
    name: str  # of the file, without its extension
    title: str
    api: str
    framework: str
    versions: list[str]
    devices: list[str]
    expected: str
    why: str
    script: str
    status: str
    upstream: str
    found: datetime.date
    case: str = ""
    cpu_features: list[str] = field(default_factory=list)  # flags of /proc/cpuinfo that the script needs
    regimes: list[str] = field(default_factory=list)
    fault: list[Fault] = field(default_factory=list)

    @property
    def runs_here(self) -> bool:
        """Whether this machine has what the script needs, besides the framework."""
        flags = set(pathlib.Path("/proc/cpuinfo").read_text().split())
        if os.environ.get("ATEN_CPU_CAPABILITY") == "default":  # PyTorch then uses no vectors
            flags -= {"avx2", "avx512f"}
        return "cpu" in self.devices and flags.issuperset(self.cpu_features)

    @property
    def is_open(self) -> bool:
        return not self.status.startswith("fixed in ")


# The type of each key; `version` is the version of the schema.
_KEYS = {name: kind for name, kind in Finding.__annotations__.items() if name != "name"} | {"version": int}
_REQUIRED = set(_KEYS) - {"case", "regimes", "fault", "cpu_features"}


def load(folder: pathlib.Path = FOLDER) -> list[Finding]:
    """All findings of the folder, by name. Raises Invalid for the first file that breaks the schema."""
    return [read(file) for file in sorted(folder.glob("*.toml"))]


def read(file: pathlib.Path) -> Finding:
    """One finding file. Raises Invalid if it breaks the schema."""
    try:
        table = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{file.name}: {error}") from error
    _check_keys(file.name, table, _KEYS, _REQUIRED)
    if table.pop("version") != 1:
        raise Invalid(f"{file.name}: version: this tool reads version 1")
    faults = []
    for each in table.pop("fault", []):
        keys = Fault.__annotations__
        _check_keys(f"{file.name}: fault", each, keys, {"outcome", "where", "how"})
        faults.append(Fault(**each))
    finding = Finding(name=file.stem, fault=faults, **table)
    _check_values(finding)
    return finding


def _check_keys(where: str, table: dict[str, Any], kinds: dict[str, Any], required: set[str]) -> None:
    for key, value in table.items():
        if key not in kinds:
            raise Invalid(f"{where}: {key}: unknown key; known are {', '.join(sorted(kinds))}")
        kind = getattr(kinds[key], "__origin__", kinds[key])
        if type(value) is not kind:
            raise Invalid(f"{where}: {key}: a {kind.__name__} is expected")
        if kinds[key] == list[str] and not all(isinstance(each, str) for each in value):
            raise Invalid(f"{where}: {key}: a list of strings is expected")
    if missing := sorted(required - set(table)):
        raise Invalid(f"{where}: {missing[0]}: missing")


def _check_values(finding: Finding) -> None:
    def check(holds: bool, key: str, message: str) -> None:
        if not holds:
            raise Invalid(f"{finding.name}.toml: {key}: {message}")

    check(finding.framework in FRAMEWORKS, "framework", f"one of {', '.join(FRAMEWORKS)} is expected")
    slug = re.fullmatch(r"(paddle|torch)(-[a-z0-9]+)+", finding.name)
    check(
        bool(slug) and finding.name.startswith(finding.framework + "-"),
        "file name",
        "the framework and words in lower case, joined by hyphens, are expected",
    )
    for key in ("title", "api", "expected", "why", "script"):
        check(bool(getattr(finding, key).strip()), key, "may not be empty")
    check(len(finding.title) <= 90 and not finding.title.endswith("."), "title", "a phrase of 90 characters")
    check(bool(finding.versions), "versions", "may not be empty")
    check(bool(finding.devices) and set(finding.devices) <= set(DEVICES), "devices", "cpu, gpu")
    status = finding.status in ("open", "reported") or re.fullmatch(r"fixed in \S+", finding.status)
    check(bool(status), "status", '"open", "reported" or "fixed in VERSION" is expected')
    check(finding.status != "reported" or bool(finding.upstream), "upstream", "a reported finding has a URL")
    check(not finding.upstream or finding.upstream.startswith("https://"), "upstream", "a URL or nothing")
    check(set(finding.regimes) <= set(REGIMES), "regimes", f"known are {', '.join(REGIMES)}")
    lines = finding.script.strip().splitlines()
    check(len(lines) <= MOST_SCRIPT_LINES, "script", f"at most {MOST_SCRIPT_LINES} lines")
    for fault in finding.fault:
        check(fault.outcome in OUTCOMES, "fault", f"unknown outcome {fault.outcome}")
        check(set(fault.values) <= set(REGIMES), "fault", "unknown value regime")
        check(set(fault.versions) <= set(finding.versions), "fault", "versions beyond those of the finding")
