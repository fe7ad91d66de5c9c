#!/usr/bin/env python3
"""How many real cases a second assay runs on GPUs and on CPUs, each figure beside its aim.

    python3 bench/gpu/figures.py lists FOLDER [--seed 7]     writes the lists of cases into FOLDER
    python3 bench/gpu/figures.py rates FOLDER [--figures small,natural] [--torch PYTHON] …

`lists` wants the corpora (../shared/corpora, or $ASSAY_SHARED/corpora) and an interpreter that has Paddle,
but no GPU; its lists can be carried to where `rates` runs. It writes small.txt (all cases of at most 20,000
elements, inputs and results, as assay plans them: it counts results from a million on), natural.txt (10,000
lines in natural frequency), natural10m.txt (those of it with at most 10 million elements) and
natural8000.txt (the 8,000 of docs/benchmarks.md), mid.txt (24,000 cases of 4 to 60 million elements, which
keep a GPU busy for a minute), big.txt (2,000 cases that assay plans with 0.8 to 40 GB), giant.txt (300 of
those that it plans with more), corpus.txt (all cases).
`rates` runs each figure in a new folder beside the lists, after a run of a single case, which says what the
start-up takes. The first run on a machine with a GPU is slow, since PyTorch compiles kernels then: run it
twice. For the first verdict and the end, with and without kept frameworks, by turns:
`--figures start,kept,start,kept`. The interpreters are those of .venv, or what --paddle and --torch name.
Two GPUs against one, each with as many cores:
`taskset -c 0-15 … rates FOLDER --figures mid,small --num_workers 8` and, by turns with it,
`… rates FOLDER --figures mid,small --num_workers 8 --num_gpus 2` on 32 cores.
"""

import argparse
import ctypes
import dataclasses
import datetime
import json
import lzma
import math
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPORA = pathlib.Path(os.environ.get("ASSAY_SHARED", ROOT.parent / "shared")) / "corpora"
NATURAL = CORPORA / "paddle_api_configs.txt.xz"
SMALL, LARGE = 20_000, 10_000_000
MIDDLING = range(4_000_000, 60_000_001)
BIG = range(800_000_000, 40_000_000_001)  # bytes, as assay plans them
GIANT = range(BIG.stop, 10**20)
LANES = {"gpu": "torch", "also": "torch", "paddlecpu": "paddle", "torchcpu": "torch"}


@dataclasses.dataclass(frozen=True)
class Figure:
    cases: str
    lanes: tuple[str, str]
    flags: str
    aim: str
    on_gpu: bool = True
    first: int | None = None
    limit: int | None = None  # seconds; then it is stopped, and what it has done is the figure


LIKE_V2 = "--values=usual --tolerance=engineV2"
# Figures give the time to these verdicts; of the 8,000 as the issue on speed counts them.
MARKS = {"cpu_natural": (5790, 7231), "corpus": range(50_000, 300_000, 50_000)}
START = "first verdict after 4 s, 2 s if kept; end 0.5 s after the last"
FIGURES = {
    "small": Figure("small.txt", ("gpu", "also"), "--values=usual", "≥ 12,000/s with 16 cores"),
    "natural": Figure("natural.txt", ("paddlecpu", "gpu"), LIKE_V2 + " --timeout=20", "≥ 1,500/s", limit=300),
    "natural10m": Figure("natural10m.txt", ("paddlecpu", "gpu"), LIKE_V2 + " --timeout=20", "≥ 1,500/s"),
    "big": Figure("big.txt", ("gpu", "also"), "--values=usual", "≥ 80% of its floor", limit=400),
    "giant": Figure("giant.txt", ("gpu", "also"), "--values=usual", "40 ms each", limit=200),
    "corpus": Figure("corpus.txt", ("gpu", "also"), "--values=usual", "250,000 in 300 s", limit=320),
    "start": Figure("small.txt", ("gpu", "also"), "--values=usual", START, first=4_000),
    "kept": Figure(
        "small.txt", ("gpu", "also"), "--values=usual --keep_frameworks=60", START, first=4_000
    ),
    "mid": Figure("mid.txt", ("gpu", "also"), "--values=usual", "two GPUs ≥ 1.95 times one", limit=300),
    "cpu_small": Figure(
        "small.txt", ("paddlecpu", "torchcpu"), LIKE_V2,
        "≥ 5,000/s on a fast host, ≥ 2,500/s on a slow one", on_gpu=False, first=20_000,
    ),
    "cpu_natural": Figure(
        "natural8000.txt", ("paddlecpu", "torchcpu"), LIKE_V2 + " --timeout=20",
        "three times as fast as d26e5e5 to the 7,231st", on_gpu=False, limit=400,
    ),
}  # fmt: skip


def find(options: argparse.Namespace, what: str) -> str:
    """An absolute path; links are kept, because a Python finds its environment by its own path."""
    built = {"assay": ROOT / "build" / "release" / "bin" / "assay"}
    usual = built.get(what, ROOT / ".venv" / what / "bin" / "python")
    given = getattr(options, what) or ("assay" if what == "assay" and not usual.exists() else usual)
    return os.path.abspath(shutil.which(given) or sys.exit(f"there is no {given}: name one with --{what}"))


def gpus() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    found = shutil.which(query[0]) and subprocess.run(query, capture_output=True, text=True, check=False)
    return found.stdout.splitlines() if found and found.returncode == 0 else []


def machine(assay: str) -> str:
    cpus = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    here = [f"{len(os.sched_getaffinity(0))} × {cpus[0] if cpus else os.uname().machine}"]
    here += [f"{gpus().count(name)} × {name}" for name in sorted(set(gpus()))]
    load = " ".join(pathlib.Path("/proc/loadavg").read_text().split()[:3])
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    version = subprocess.check_output([assay, "--version"], text=True).strip()
    return f"{now}, {', '.join(here)}, load {load}, {version}"


def lines_of(path: pathlib.Path) -> list[str]:
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as text:
        return [line.rstrip("\n") for line in text if line.strip()]


def planned(assay: str, python: str, lines: list[str]) -> list[tuple[str, int, int]]:
    """The text, the elements and the bytes of each case, as assay plans it."""
    # Nobody else reads the database of a run that goes on: its output says when the plan is in it.
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cases.txt").write_text("\n".join(lines))
        flags = "--api_config_file=cases.txt --log_dir=run --paddle_only=True --num_gpus=0"
        command = [assay, "api", *flags.split(), "--num_workers_per_gpu=1", f"--paddle_python={python}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        announced, output = -1, ""
        with subprocess.Popen(command, cwd=folder, **pipes) as run:
            for line in run.stdout or ():
                output += line
                if found := re.match(r"(\d+) cases? to run", line):
                    announced = int(found[1])
                if found or "stopping: running cases" in line:  # the second time: at once
                    run.send_signal(signal.SIGINT)
        if announced < 0:
            sys.exit("assay did not plan: " + output.strip().rpartition("\n")[2])
        query = "SELECT text, elements, bytes FROM planned ORDER BY number"
        rows = sqlite3.connect(folder / "run" / "run.db").execute(query).fetchall()
    if len(rows) != announced:
        sys.exit(f"assay planned {announced} cases, and its run.db has {len(rows)}")
    return rows


def write_lists(options: argparse.Namespace) -> None:
    assay, python = find(options, "assay"), find(options, "paddle")
    natural = random.Random(options.seed).sample(lines_of(NATURAL), 10_000)
    print(machine(assay), flush=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    files = sorted([*CORPORA.glob("*.txt.xz"), *CORPORA.glob("*.txt")])
    cases = planned(assay, python, [line for path in files for line in lines_of(path)])
    corpus = [text for text, _, _ in cases]
    small = [text for text, elements, _ in cases if elements <= SMALL]
    big = random.Random(options.seed).sample([text for text, _, size in cases if size in BIG], 2_000)
    giant = random.Random(options.seed).sample([text for text, _, size in cases if size in GIANT], 300)
    middling = [text for text, elements, _ in cases if elements in MIDDLING]
    mid = random.Random(options.seed).sample(middling, 24_000)
    random.Random(options.seed).shuffle(small)
    print(f"small.txt: {len(small):,} of {len(cases):,} cases, seed {options.seed}", flush=True)
    cases = planned(assay, python, natural)
    fitting = [text for text, elements, _ in cases if elements <= LARGE]
    print(f"natural.txt: {len(natural):,} lines, {len(cases):,} different cases, seed {options.seed}")
    print(f"natural10m.txt: {len(fitting):,} of these")
    shuffled = 'xz -dc "$1" | shuf -n 8000 --random-source=<(yes 7)'
    drawn = subprocess.check_output(["bash", "-c", shuffled, "shuf", NATURAL], text=True).splitlines()
    lists = {
        "small": small, "natural": natural, "natural10m": fitting, "natural8000": drawn, "mid": mid,
        "big": big, "giant": giant, "corpus": corpus,
    }  # fmt: skip
    for name, texts in lists.items():
        (options.folder / f"{name}.txt").write_text("\n".join(texts) + "\n")


def cpu_of_children() -> float:
    """CPU seconds of all that was started here and has ended, orphans too; they have 20 s to end."""
    until = time.monotonic() + 20
    try:
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        print("note: something that assay started still runs; its CPU time is missing", file=sys.stderr)
    except ChildProcessError:
        pass  # nothing is left
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def timed(
    command: list[str], folder: pathlib.Path, lines: list[str], name: str, limit: int | None = None
) -> tuple[float, float, dict]:
    """Runs them; gives seconds by the clock, CPU seconds of all processes (0 if GPUs run the cases), and
    assay's report."""
    counted = "--num_gpus=0" in command  # a kept framework does not end
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    command = [*command, f"--api_config_file={name}.txt", f"--log_dir={name}"]
    before, began = cpu_of_children() if counted else 0.0, time.monotonic()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, **pipes) as run:
        try:
            said, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate()
    seconds = time.monotonic() - began
    if run.returncode not in (0, 1) and seconds < (limit or math.inf):
        sys.exit(f"{folder.name}: assay ended with {run.returncode}: {said.strip().rpartition(chr(10))[2]}")
    cpu = cpu_of_children() - before if counted else 0.0
    report = subprocess.check_output([command[0], "report", folder / name, "--json"])
    return seconds, cpu, json.loads(report)


def is_light(line: str) -> bool:
    shapes = re.findall(r"Tensor\(\[([\d, ]*)\]", line)
    return all(math.prod(map(int, re.findall(r"\d+", shape))) <= SMALL for shape in shapes)


COPY_RATE = """
import torch
a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").fill_(1)
b, begin, end = a.clone(), torch.cuda.Event(True), torch.cuda.Event(True)
for run in range(21):
    if run == 1: begin.record()
    b.copy_(a)
end.record(); torch.cuda.synchronize()
print(20 * 2 * a.numel() / begin.elapsed_time(end) * 1000)
"""
SIZES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}


def bytes_of(line: str) -> int:
    """Of the tensors among its arguments."""
    found = re.findall(r"Tensor\(\[([\d, ]*)\], *\"(\w+)\"", line)
    return sum(math.prod(map(int, re.findall(r"\d+", dims))) * SIZES.get(dtype, 8) for dims, dtype in found)


def seconds_of(report: dict, *stages: str) -> float:
    return sum(lane.get(stage, 0) for lane in report["seconds"].values() for stage in stages)


def against_floor(command: list[str], folder: pathlib.Path, python: str, whole: float, report: dict) -> str:
    """The floor of a run of large cases: what both lanes' calls take in one process without neighbours, and
    the time to write the inputs once and to read results and gradients of both lanes once, each taken as
    large as the inputs. Cases that did not pass (what does not fit, above all) move nothing."""
    lines = lines_of(folder / "all.txt")
    query = "SELECT text FROM planned JOIN finished USING (id) WHERE outcome IN ('pass', 'self_only')"
    passed = sqlite3.connect(folder / "all" / "run.db").execute(query)
    alone = [flag for flag in command if not flag.startswith(("--num_workers", "--reference-lane"))]
    alone += ["--paddle_only=True", "--num_workers_per_gpu=1"]
    clock, _, single = timed(alone, folder, lines, "alone", 400)
    copy_rate = float(subprocess.check_output([python, "-c", COPY_RATE], text=True))
    moved = 5 * sum(bytes_of(text) for (text,) in passed) / copy_rate
    calls = seconds_of(single, "forward", "backward")
    floor = 2 * calls + moved
    stages = ("build", "forward", "copy", "backward")
    both = ", ".join(f"{stage} {seconds_of(report, stage):.1f} s" for stage in stages)
    one = ", ".join(f"{stage} {seconds_of(single, stage):.1f} s" for stage in stages)
    return (
        f"; floor {floor:.1f} s (2 × {calls:.1f} s of calls in one process, {moved:.1f} s of memory traffic"
        f" at {copy_rate / 1e9:,.0f} GB/s): {100 * floor / whole:.0f}% of it; lanes of the run: {both};"
        f" one lane alone: {one}, {clock:.1f} s by the clock"
    )


def rate(options: argparse.Namespace, name: str, programs: dict[str, str]) -> str:
    figure = FIGURES[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=options.folder))
    tables = "version = 1\n"
    for lane in figure.lanes:
        python = json.dumps(programs[LANES[lane]], ensure_ascii=False)
        tables += f'[lanes.{lane}]\nframework = "{LANES[lane]}"\npython = {python}\n'
        tables += 'device = "cpu"\n' if lane.endswith("cpu") else ""
    (folder / "assay.toml").write_text(tables)
    flags = f"--test-lane={figure.lanes[0]} --reference-lane={figure.lanes[1]} {figure.flags}"
    flags += " --allow=self_only"  # the cases name Paddle's functions, and both lanes are PyTorch
    flags += f" --num_gpus={options.num_gpus if figure.on_gpu else 0}"
    flags += f" --num_workers_per_gpu={options.num_workers or (-1 if figure.on_gpu else 2)}"
    command = [programs["assay"], "api", *flags.split(), "--quiet"]
    os.environ["ASSAY_STAGE_CLOCK"] = "" if figure.on_gpu else "cpu"  # see src/native/stage_clock.h
    lines = lines_of(options.folder / figure.cases)[: figure.first]
    for guess, line in enumerate((list(filter(is_light, lines)) or lines)[:5]):
        start, _, report = timed(command, folder, [line], f"start{guess}")
        if not {"pass", "self_only"}.isdisjoint(report["outcomes"]):
            break  # what fails runs twice
    began = time.time()
    whole, cpu, report = timed(command, folder, lines, "all", figure.limit)
    rows = sqlite3.connect(folder / "all" / "run.db").execute("SELECT at_ms FROM finished ORDER BY at_ms")
    at = [at_ms / 1000 for (at_ms,) in rows]
    if not (cases := len(at)):
        sys.exit(f"{name}: assay ran no case of {figure.cases}")
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in report["outcomes"].items() if count)
    outcomes += f"; {report['flags'].get('contaminated', 0)} contaminated"
    known = report["properties"]  # lanes of one framework and Python are told by one of their names
    versions = {f"{LANES[lane]} {known[lane]}" for lane in figure.lanes if lane in known}
    text = f"{name}: {figure.cases}, {flags} ({', '.join(sorted(versions))}): {cases:,} cases ({outcomes})"
    rest = f"{cases / (whole - start):,.0f}/s" if whole > 1.2 * start else "too little to tell"
    between = at[-1] - at[0]
    text += f" in {whole:.1f} s, start-up {start:.1f} s, without it {rest}; the first verdict after"
    text += f" {at[0] - began:.2f} s, the end {began + whole - at[-1]:.2f} s after the last; first to last"
    text += f" verdict {between:.1f} s, {cases / max(0.01, between):,.0f}/s"
    tenth, most = at[cases // 10], at[cases * 9 // 10]  # without the ramps at both ends
    text += f", from the first tenth to the last {0.8 * cases / max(0.01, most - tenth):,.0f}/s"
    marks = [mark for mark in MARKS.get(name, ()) if mark <= cases]
    for mark in marks or [cases * share // 100 for share in (50, 90, 99)]:
        text += f", to the {mark:,}th {at[max(mark - 1, 0)] - at[0]:.1f} s"
    text += f"; aim {figure.aim}"
    if name in ("big", "giant"):
        text += against_floor(command, folder, programs["torch"], whole, report)
    if not figure.on_gpu:
        calls = sum(of.get("forward", 0) + of.get("backward", 0) for of in report["seconds"].values())
        text += f"; in framework calls {calls:.1f} of {cpu:.1f} CPU s, {100 * calls / cpu:.0f}% (aim ≥ 85%)"
    return text


def print_rates(options: argparse.Namespace) -> None:
    names = options.figures.split(",")
    if unknown := set(names) - FIGURES.keys():
        sys.exit(f"no figure is called {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    for name in names:
        if not (cases := options.folder / FIGURES[name].cases).is_file() or not lines_of(cases):
            sys.exit(f"there are no cases in {cases}; make them: figures.py lists {options.folder}")
    wanting = ", ".join(name for name in names if FIGURES[name].on_gpu)
    if wanting and (options.num_gpus == 0 or not gpus()):
        why = "--num_gpus=0 takes none" if options.num_gpus == 0 else "nvidia-smi shows none"
        sys.exit(f"{wanting}: no GPU, {why} (--figures=cpu_small needs none)")
    frameworks = {LANES[lane] for name in names for lane in FIGURES[name].lanes}
    programs = {what: find(options, what) for what in sorted(frameworks | {"assay"})}
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans of assay count as children
    print(machine(programs["assay"]), flush=True)
    for name in names:
        print(rate(options, name, programs), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(required=True, metavar="lists|rates")
    lists, rates = verbs.add_parser("lists"), verbs.add_parser("rates")
    for verb, act in ((lists, write_lists), (rates, print_rates)):
        verb.set_defaults(act=act)
        verb.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
        verb.add_argument("--assay", metavar="PROGRAM")
        verb.add_argument("--paddle", metavar="PYTHON")
    lists.add_argument("--seed", type=int, default=7)
    rates.add_argument("--torch", metavar="PYTHON")
    rates.add_argument("--figures", default=",".join(FIGURES), help="default: %(default)s")
    rates.add_argument("--num_gpus", type=int, default=1, help="-1: all; default: 1")
    rates.add_argument("--num_workers", type=int, help="default: as assay chooses; of cpu_small 2")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    try:
        options.act(options)
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except (OSError, ValueError, lzma.LZMAError, sqlite3.Error, subprocess.SubprocessError) as error:
        sys.exit(f"figures.py: {error}")


if __name__ == "__main__":
    main()
