#!/usr/bin/env python3
"""How often a build is flagged against itself, and how often a planted slowdown is found, on real cases.

    python3 bench/performance/figures.py [--framework torch] [--cases FILE] [--first N] [--folder DIR] …

Two runs of assay for each framework: the same build in both lanes, from two servers, as two builds would
be, and in the test lane the same build whose calls take a twentieth longer (slower_framework.py). On a
machine with GPUs the lanes sit there (--num_gpus=0: on the CPU). The interpreters are those of
.venv, or what --python names (torch=/usr/bin/python3). On a GPU calls of the usual cases are too short to
become slower by a twentieth: --cases bench/performance/large_cases.txt has longer ones.
"""

import argparse
import datetime
import pathlib
import platform
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMED = ("slow", "fast", "same", "unsure")
LANES = """version = 1
[lanes.as_is]
framework = "{framework}"
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=slower_framework", "PYTHONPATH={here}"]
[lanes.again]
framework = "{framework}"
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=slower_framework", "PYTHONPATH={here}", "ASSAY_SLOWER=0"]
[lanes.slower]
framework = "{framework}"
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=slower_framework", "PYTHONPATH={here}", "ASSAY_SLOWER={slower}"]
"""


def outcomes(assay: pathlib.Path, run: pathlib.Path) -> dict[str, list[str]]:
    listed = {}
    for outcome in TIMED:
        text = subprocess.check_output([assay, "report", run, "--list", outcome], text=True)
        listed[outcome] = text.splitlines()
    return listed


def measure(options: argparse.Namespace, framework: str, test_lane: str) -> dict[str, list[str]]:
    folder = options.folder / f"{framework}-{test_lane}"
    folder.mkdir(parents=True, exist_ok=True)
    pythons = dict(entry.split("=", 1) for entry in options.python)
    python = pythons.get(framework, ROOT / ".venv" / framework / "bin" / "python")
    here = pathlib.Path(__file__).resolve().parent
    settings = LANES.format(framework=framework, python=python, here=here, slower=options.slower)
    (folder / "assay.toml").write_text(settings)
    cases = folder / "cases.txt"
    lines = [line for line in options.cases.read_text().splitlines() if line.strip()]
    random.Random(7).shuffle(lines)
    cases.write_text("\n".join(lines[: options.first]) + "\n")
    command = [
        options.assay, "api", f"--api_config_file={cases}", "--paddle_torch_gpu_performance=True",
        f"--test-lane={test_lane}", "--reference-lane=as_is", f"--num_gpus={options.num_gpus}",
        "--quiet", f"--log_dir={folder / 'run'}",
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    found = outcomes(options.assay, folder / "run")
    counts = ", ".join(f"{len(found[outcome])} {outcome}" for outcome in TIMED)
    print(f"  {test_lane} against as_is: {counts}; {time.monotonic() - began:.0f} s", flush=True)
    return found


def machine() -> str:
    cpus = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    load = " ".join(pathlib.Path("/proc/loadavg").read_text().split()[:3])
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{now}, {len(cpus)} × {cpus[0] if cpus else platform.machine()}, load {load}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--framework", action="append", choices=["paddle", "torch"])
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "examples" / "api_configs.txt")
    parser.add_argument(
        "--first", type=int, default=10**6, help="of the cases, in an order drawn from a seed"
    )
    parser.add_argument("--slower", default="0.05")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("performance-figures"))
    parser.add_argument("--num_gpus", default="-1")
    parser.add_argument("--python", action="append", default=[], metavar="FRAMEWORK=PYTHON")
    parser.add_argument("--assay", type=pathlib.Path, default=ROOT / "build" / "release" / "bin" / "assay")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    for framework in options.framework or ["paddle", "torch"]:
        print(f"{framework}: {machine()}", flush=True)
        itself = measure(options, framework, "again")
        planted = measure(options, framework, "slower")
        cases = sum(map(len, itself.values()))
        flagged = len(itself["slow"]) + len(itself["fast"])
        found, of = len(planted["slow"]), sum(map(len, planted.values()))
        print(f"  against itself: {flagged} of {cases} flagged ({100 * flagged / max(1, cases):.1f}%)")
        print(
            f"  {options.slower} longer: {found} of {of} found ({100 * found / max(1, of):.1f}%)", flush=True
        )


if __name__ == "__main__":
    main()
