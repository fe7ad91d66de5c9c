#!/usr/bin/env python3
"""Do the scripts of all findings of a run show their faults on this machine?

    python3 bench/report/finding_scripts.py [--workers 2] [--scripts FOLDER] RUN…

Each script has to exit with 1 here. With the expected value in place of the computed one it has to exit with
0, as it will on a build that is right. Prints each finding whose script does not, and the counts.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = ROOT / "build" / "release" / "bin" / "assay"
NO_SCRIPT = re.compile(r"There is no short script: (.*)\. `assay shrink`")
RAN = re.compile(r"- (assay (?:ran the script here|did not run the script).*)")
SHOWS = "it exits with 1, so the fault shows"


def python_of(source: str) -> pathlib.Path:
    framework = "torch" if re.search(r"^import torch\b", source, re.M) else "paddle"
    return ROOT / ".venv" / framework / "bin" / "python"


def healthy(source: str) -> str:
    """The script with the right value in place of the computed one; empty for a script that compares none."""
    line = next((line for line in source.splitlines() if line.startswith('print("got     ", got)')), None)
    return source.replace(line, f"got = expected\n{line}", 1) if line else ""


def outcome(run: pathlib.Path, number: int, script: pathlib.Path) -> tuple[str, str]:
    command = [ASSAY, "finding", run, str(number), "--budget=0", "--script", script]
    script.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if missing := NO_SCRIPT.search(done.stdout):
        return "no script", missing[1]
    ran = RAN.search(done.stdout)
    if not ran or SHOWS not in ran[1]:
        return "does not show", ran[1] if ran else done.stdout[-500:] + done.stderr
    source = script.read_text()
    if not (fixed := healthy(source)):
        return "shows", ""
    fixed_script = script.with_suffix(".healthy.py")
    fixed_script.write_text(fixed)
    code = subprocess.run(
        [python_of(source), fixed_script], capture_output=True, text=True, check=False
    ).returncode
    return ("shows, healthy 0", "") if code == 0 else ("healthy is not 0", f"exits with {code}")


def check(run: pathlib.Path, options: argparse.Namespace) -> bool:
    """Whether the scripts of all findings of the run do as they should. Prints those that do not."""
    report = subprocess.run([ASSAY, "report", run, "--json"], capture_output=True, text=True, check=True)
    findings = json.loads(report.stdout)["findings"]
    folder = options.scripts / run.resolve().name
    folder.mkdir(parents=True, exist_ok=True)
    counts: collections.Counter[str] = collections.Counter()

    def tried(finding: dict[str, Any]) -> tuple[str, str]:
        return outcome(run, finding["number"], folder / f"finding{finding['number']}.py")

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for finding, (kind, why) in zip(findings, pool.map(tried, findings), strict=True):
            counts[kind] += 1
            if why:
                print(f"{kind}: {run.name} {finding['number']} {finding['case']}\n    {why}", flush=True)
    print(f"{run}: {len(findings)} findings:", ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return not (counts["does not show"] or counts["healthy is not 0"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scripts", type=pathlib.Path, default=pathlib.Path("build/scripts"))
    options = parser.parse_args()
    return 0 if all([check(run, options) for run in options.runs]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
