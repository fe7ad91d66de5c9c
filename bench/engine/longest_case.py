#!/usr/bin/env python3
"""How long a run goes on after its longest case, which has work beside it: the aim is 5% of the rest.

    python3 bench/engine/longest_case.py [--workers 4] [--extent 4096] [--rest 20000] [--assay …] [--torch …]

PyTorch on the CPU in both lanes. One product of matrices takes seconds, and so many small ones are shuffled
around it. Timed are a single small case (the start-up), the long one alone, the small ones alone, and all of
them twice: knowing nothing, and with the first of these runs as --costs-from. Each lane wants a core of its
own: a machine with twice as many cores as workers.
"""

import argparse
import datetime
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANES = """version = 1
[lanes.one]
framework = "torch"
python = "{python}"
"""


def rest_of(count: int) -> list[str]:
    shapes = random.Random(7).choices(
        [(rows, columns) for rows in range(1, 64) for columns in range(1, 64)], k=count
    )
    return [
        f'paddle.add(Tensor([{rows}, {columns}], "float32"), Tensor([{columns}], "float32"), name="{number}")'
        for number, (rows, columns) in enumerate(shapes)
    ]


def seconds(options: argparse.Namespace, name: str, lines: list[str], *more: str) -> float:
    (options.folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    flags = f"--accuracy=True --values=usual --num_gpus=0 --num_workers_per_gpu={options.workers} --quiet"
    lanes = "--test-lane=one --reference-lane=one"
    files = f"--api_config_file={name}.txt", f"--log_dir={name}"
    command = [options.assay, "api", *flags.split(), *lanes.split(), *files, *more]
    began = time.monotonic()
    done = subprocess.run(command, cwd=options.folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: assay ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"), metavar="PROGRAM")
    parser.add_argument("--torch", default=str(ROOT / ".venv/torch/bin/python"), metavar="PYTHON")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--extent", type=int, default=4096, help="of the matrices; default: %(default)s")
    parser.add_argument("--rest", type=int, default=20_000, help="small cases; default: %(default)s")
    options = parser.parse_args()
    for what in ("assay", "torch"):  # links are kept: a Python finds its environment by its own path
        given = getattr(options, what)
        setattr(options, what, os.path.abspath(shutil.which(given) or sys.exit(f"there is no {given}")))
    matrix = f'Tensor([{options.extent}, {options.extent}], "float64")'
    long, rest = [f"paddle.matmul({matrix}, {matrix})"], rest_of(options.rest)
    both = long + rest
    random.Random(3).shuffle(both)
    cpus = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    print(f"{now}, {len(os.sched_getaffinity(0))} × {cpus[0] if cpus else '?'}, {options.workers} workers")
    with tempfile.TemporaryDirectory() as name:
        options.folder = pathlib.Path(name)
        (options.folder / "assay.toml").write_text(LANES.format(python=options.torch))
        start = seconds(options, "start", rest[:1])
        alone, others = (seconds(options, *of) - start for of in (("long", long), ("rest", rest)))
        print(f"start-up {start:.1f} s; the longest case alone {alone:.1f} s, the rest alone {others:.1f} s")
        for what, costs in (("nothing known", ()), ("costs known", ("--costs-from=unknown",))):
            took = seconds(options, "known" if costs else "unknown", both, *costs) - start
            share = 100 * (took - alone) / others
            print(
                f"  {what}: all in {took:.1f} s, {share:.0f}% of the rest after the longest alone (aim ≤ 5%)"
            )


if __name__ == "__main__":
    main()
