"""Runs of `assay api` with the real frameworks."""

import json
import pathlib
import subprocess

import pytest
from tree import ASSAY, ROOT


def run(folder, corpus, *flags):
    """Outcome of each case of a corpus, by its canonical text, as the logs in folder/run have them."""
    for needed in (ASSAY, ROOT / ".venv" / "paddle", ROOT / ".venv" / "torch"):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not there: make build")
    logs = folder / "run"
    command = [ASSAY, "api", f"--api_config_file={corpus}", "--accuracy=True", "--num_workers_per_gpu=2"]
    done = subprocess.run(
        [*command, f"--log_dir={logs}", *flags], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    logs_of_lanes = [log.read_text(errors="replace") for log in (logs / "lanes").glob("*.log")]
    assert [line for log in logs_of_lanes for line in log.splitlines() if "assay: BUG" in line] == []
    names = ("invalid", "pass", "no_kernel", "rejected", "unsupported", "mismatch", "crash", "timeout", "oom")
    found = {}
    for outcome in (*names, "test_error", "reference_error", "self_only"):
        listed = subprocess.check_output([ASSAY, "report", logs, "--list", outcome], text=True)
        found |= dict.fromkeys(listed.splitlines(), outcome)
    return found


def passes_in_torch(checks, *arguments):
    """Runs a script of tests in PyTorch's Python: all of them, each by its name."""
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there: make build")
    done = subprocess.run([python, checks, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = [line.split()[1].split("(")[0] for line in checks.open() if line.startswith("def test_")]
    assert done.stdout.split() == wanted


def outcomes_by_api(folder, cases, module=None, *flags):
    """Outcome of each API of these cases, with the frameworks wrapped by this module beside the tests."""
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(cases) + "\n")
    if module:
        beside = pathlib.Path(__file__).parent
        setting = f'environment = ["ASSAY_FRAMEWORK_MODULE={module}", "PYTHONPATH={beside}"]\n'
        tables = "".join(f"[frameworks.{name}]\n{setting}" for name in ("paddle", "torch"))
        (folder / "assay.toml").write_text("version = 1\n" + tables)
    return {case.split("(")[0]: outcome for case, outcome in run(folder, corpus, *flags).items()}


def findings(folder):
    """The findings of the run in folder/run, as `assay report --json` has them."""
    report = subprocess.check_output([ASSAY, "report", folder / "run", "--json"], text=True)
    return json.loads(report)["findings"]


def unknown_faults(folder):
    """The faults of the run in folder/run that no shipped list of known faults explains."""
    command = [ASSAY, "report", folder / "run", "--against=known", "--json", "--every-failure"]
    report = subprocess.check_output([*command, "--fail-on=none"], text=True)
    against = json.loads(report)["against"]
    assert against["past"] == "known (paddle-3.3.1, torch-2.13.0)" and against["known"], against["past"]
    return against["new"] + against["grown"]


def failures(found):
    """How many cases of each API have each outcome that is a failure."""
    counts = {}
    for case, outcome in found.items():
        if outcome not in ("pass", "no_kernel", "rejected", "unsupported"):
            key = case.split("(")[0], outcome
            counts[key] = counts.get(key, 0) + 1
    return counts
