#!/usr/bin/env python3
"""What assay says of planted faults under compute-sanitizer; a session beside a process for each case.

    python3 bench/gpu/sanitizer.py FOLDER [--assay PROGRAM] [--torch PYTHON] [--cases FILE] [--first N]

On a machine with a GPU, NVIDIA's CUDA toolkit and PyTorch 2.9 or newer. Under each tool the test lane runs a
PyTorch with three faulty kernels (planted_framework.py) on cases with and without them; then the first N
cases of the list (without faults) run in one session, and three of them in a session each.
"""

import argparse
import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "release" / "bin" / "assay"
PLANTED = {"memcheck": "paddle.atan", "racecheck": "paddle.sinh", "initcheck": "paddle.cosh"}
APIS = (*PLANTED.values(), "paddle.asinh")
LANES = """version = 1
[lanes.right]
framework = "torch"
python = "{python}"
[lanes.planted]
framework = "torch"
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=planted_framework", "PYTHONPATH={here}"]
"""


def run(assay: str, folder: pathlib.Path, name: str, lines: list[str], *flags: str) -> tuple[float, str]:
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    command = [
        assay, "api", f"--api_config_file={name}.txt", f"--log_dir={name}", "--reference-lane=right",
        "--accuracy=True", "--num_gpus=1", "--values=usual", "--quiet", *flags,
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: assay ended with {done.returncode}: {(done.stdout + done.stderr).strip()}")
    listed = subprocess.check_output([assay, "report", folder / name, "--list", "sanitizer"], text=True)
    return seconds, listed


def check_faults(assay: str, folder: pathlib.Path) -> bool:
    right = True
    cases = [f'{api}(Tensor([{size}, 4], "float32"))' for size in (3, 5) for api in APIS]
    for tool, api in PLANTED.items():
        flags = ("--test-lane=planted", f"--use_compute_sanitizer={tool}")
        seconds, listed = run(assay, folder, tool, cases, *flags)
        found = re.findall(r"paddle\.\w+", listed)
        right = right and sorted(found) == [api, api]
        print(f"{tool}: {len(cases)} cases, 2 of {api} have its fault: reported {found}, {seconds:.1f} s")
    _, listed = run(assay, folder, "without", cases, "--test-lane=planted")
    print(f"without a tool: reported {re.findall(r'paddle.*', listed)}", flush=True)
    return right and not listed.strip()


def compare_sessions(assay: str, folder: pathlib.Path, lines: list[str]) -> None:
    flags = ("--test-lane=right", "--use_compute_sanitizer=memcheck")
    session, _ = run(assay, folder, "session", lines, *flags)
    each = [run(assay, folder, f"alone{i}", [line], *flags)[0] for i, line in enumerate(lines[:3])]
    shown = ", ".join(f"{seconds:.1f}" for seconds in each)
    times = len(lines) * sum(each) / len(each) / session
    print(f"{len(lines)} cases under memcheck: {session:.1f} s; alone {shown} s: {times:.0f} times (aim ≥ 5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--assay", default=str(BUILT) if BUILT.exists() else "assay")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument(
        "--cases", type=pathlib.Path, default=HERE.parents[1] / "examples" / "api_configs.txt"
    )
    parser.add_argument("--first", type=int, default=40)
    options = parser.parse_args()
    assay = shutil.which(options.assay) or sys.exit(f"there is no {options.assay}: name one with --assay")
    options.folder.mkdir(parents=True, exist_ok=True)
    settings = LANES.format(python=options.torch, here=HERE)
    (options.folder / "assay.toml").write_text(settings)
    lines = [line for line in options.cases.read_text().splitlines() if line.startswith("paddle.")]
    print(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC", flush=True)
    right = check_faults(assay, options.folder)
    compare_sessions(assay, options.folder, lines[: options.first])
    sys.exit(0 if right else "not each planted fault was reported, or something else was")


if __name__ == "__main__":
    main()
