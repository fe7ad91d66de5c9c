"""Short runs of fake frameworks, whose processes are killed or stopped at random moments.

    python bench/engine/chaos.py build/release/bin/assay --runs=500 --seed=1 --jobs=4

A run is `assay api`, a campaign of it, one with a page (`assay serve`), a list of stages, or a suite's
script. Each gets one to five faults: SIGKILL, SIGTERM, SIGINT, SIGHUP, or SIGSTOP with SIGCONT 0.2 to 4 s
later, to a random process of a random kind (KINDS), from the first moment of planning to the end. A run
that was ended, or that could not start, is resumed with the same command. Afterwards each case must have
its one right verdict and each stage its file, a page that nobody ended must answer, and no process or file
may be left. Prints one line for each broken rule, and the sums.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG_S = 30.0  # of one program, without the time in which a process is stopped
MOST_STARTS = 12
KEEP_S = 2
ENDINGS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KINDS = ("supervisor", "slot", "server", "lane", "kept", "campaign", "page", "chain", "stage", "shim")
WAYS = ("api", "api", "campaign", "page", "chain", "script")
CAMPAIGN = """version = 1
name = "night"
[input]
api_config_file = "cases.txt"
[output]
log_dir = "run"
[engine_args]
test_cpu = true
num_workers_per_gpu = 2
"""
STAGE = """[stages.{0}]
command = "python3 -c 'import time; time.sleep(0.6); open(\\"{0}.out\\", \\"w\\").write(\\"{0}\\")'"
makes = "{0}.out"
"""
STAGES = ("prepare", "train", "eval")
# A suite's script, whose interpreter is the shim, and the program of its stages.
SCRIPT = """file=$1
value() { grep "^$1:" $file | head -1 | cut -d: -f2-; }
python=$(value python)
out=./output
mkdir -p $out
eval "$python $(value norm_train) --out=$out/w --epochs=2" > $out/train.log 2>&1
eval "$python $(value eval) --weights=$out/w/last.w" > $out/eval.log 2>&1
eval "$python $(value norm_export) --out=$out/model --weights=$out/w/last.w" > $out/export.log 2>&1
eval "$python $(value inference) --model_dir=$out/model" > $out/infer.log 2>&1
"""
PARAMS = """model_name:tiny
python:python3
norm_train:train.py
eval:eval.py
norm_export:export.py
inference:infer.py
"""
PROGRAM = """import os, sys, time
words = dict(word[2:].split("=", 1) for word in sys.argv[1:])
time.sleep(0.4)
made = {"train.py": ["last.w"], "export.py": ["inference.pdmodel", "inference.pdiparams"]}
for name in made.get(os.path.basename(sys.argv[0]), []):
    os.makedirs(words["out"], exist_ok=True)
    with open(os.path.join(words["out"], name), "w") as file:
        file.write(name)
print("epoch 2/2 loss: 0.5")
"""
MADE = {
    "chain": {f"{name}.out": name for name in STAGES},
    "script": {
        "output/w/last.w": "last.w",
        "output/model/inference.pdmodel": "inference.pdmodel",
        "output/model/inference.pdiparams": "inference.pdiparams",
    },
}


def cases():
    """The corpus with the outcome of each line."""
    lines = {}
    for size in range(1, 71):
        name, more = ("wrong", "") if size % 18 == 0 else ("slow", ", 0.02")
        if size in (7, 41):
            name, more = "crash", ""
        elements = 3_000_000 + size if size % 30 == 0 else size
        outcome = {"slow": "pass", "wrong": "mismatch", "crash": "crash"}[name]
        lines[f'paddle.fake.{name}(Tensor([{elements}], "float32"){more})'] = outcome
    return lines


def read(path):
    """The bytes of a file of /proc, empty for a process that has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


class Run:
    """One run with its faults, in a folder of its own."""

    def __init__(self, assay, seed):
        self.random = random.Random(seed)
        self.assay = assay
        outer = pathlib.Path(tempfile.mkdtemp(prefix="assay-chaos-"))
        self.folder, self.temp = outer / "work", outer / "tmp"
        self.folder.mkdir()
        self.temp.mkdir()
        self.mark = f"ASSAY_TEST={self.folder}".encode()
        self.way = self.random.choice(WAYS)
        self.keeps = self.random.random() < 0.3
        self.expected = cases()
        self.faults = collections.Counter()
        self.broken = []
        self.longest = 0.0
        environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", f"PYTHONPATH={ROOT}/tests/engine/fake"]
        environment.append(self.mark.decode())
        settings = "version = 1\n" + (f"keep_frameworks = {KEEP_S}\n" if self.keeps else "")
        for framework in ("paddle", "torch"):
            settings += (
                f'[frameworks.{framework}]\npython = "python3"\nenvironment = {json.dumps(environment)}\n'
            )
        (self.folder / "assay.toml").write_text(settings)
        (self.folder / "night.toml").write_text(CAMPAIGN)
        stages = "".join(STAGE.format(name) for name in STAGES)
        (self.folder / "chain.toml").write_text('version = 1\nmodel = "line"\n' + stages)
        (self.folder / "test_tipc").mkdir()
        (self.folder / "test_tipc/test_train_inference_python.sh").write_text(SCRIPT)
        (self.folder / "f.txt").write_text(PARAMS)
        for name in ("train", "eval", "export", "infer"):
            (self.folder / f"{name}.py").write_text(PROGRAM)
        lines = list(self.expected)
        # Lines that are there twice make planning longer; they are no cases of their own.
        repeats = self.random.choice((1, 1, 1, 1000))
        (self.folder / "cases.txt").write_text("\n".join(lines * repeats) + "\n")

    def processes(self):
        """The processes of the run by kind."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and self.mark in read(entry / "environ"):
                parent = read(entry / "stat").rpartition(b")")[2].split()
                found[int(entry.name)] = (read(entry / "cmdline"), int(parent[1]) if len(parent) > 1 else 0)
        kinds = collections.defaultdict(list)
        for pid, (command, parent) in found.items():
            depth = 0  # below the interpreter that imported the framework; forks have its command
            while b"assay.server" in found.get(parent, (b"", 0))[0]:
                depth, parent = depth + 1, found[parent][1]
            words = command.split(b"\0")
            verb = words[1] if len(words) > 1 and words[0].endswith(b"/assay") else b""
            if verb in (b"run", b"serve", b"chain"):
                kinds[{b"run": "campaign", b"serve": "page", b"chain": "chain"}[verb]].append(pid)
            elif self.way in MADE:
                kinds["shim" if self.is_shim(pid) else "stage"].append(pid)
            elif b"assay.server" in command:
                kind = (("kept", "server") if b"--kept-record" in command else ("server",))[depth:][:1]
                kinds[kind[0] if kind else "lane"].append(pid)
            else:
                kinds["slot" if b"\0slot\0" in command else "supervisor"].append(pid)
        return kinds

    @staticmethod
    def is_shim(pid):
        """Whether the process is the interpreter that the script sees."""
        try:
            return os.readlink(f"/proc/{pid}/exe").endswith("/assay-shim")
        except OSError:
            return False

    def fault(self):
        """Ends or stops a process; the time in which it was stopped."""
        kinds = self.processes()
        kind = self.random.choice([kind for kind in KINDS if kinds[kind]] or [None])
        if kind is None:
            return 0.0
        pid = self.random.choice(kinds[kind])
        number = self.random.choice((*ENDINGS, *[signal.SIGSTOP] * len(ENDINGS)))
        self.faults[f"{number.name} {kind}"] += 1
        try:
            os.kill(pid, number)
            if number != signal.SIGSTOP:
                return 0.0
            pause = self.random.uniform(0.2, 4.0)
            time.sleep(pause)
            os.kill(pid, signal.SIGCONT)
            return pause
        except ProcessLookupError:
            return 0.0

    def show(self):
        """Prints the processes with their states, and the end of the output."""
        for kind, pids in self.processes().items():
            for pid in pids:
                state = read(pathlib.Path(f"/proc/{pid}/status")).split(b"State:")[-1].split(b"\n")[0].strip()
                command = read(pathlib.Path(f"/proc/{pid}/cmdline")).replace(b"\0", b" ")[:120]
                print(f"  {kind} {pid} {state.decode()}: {command.decode(errors='replace')}")
        print((self.folder / "output.txt").read_text()[-2000:])

    def start(self):
        """Starts the program, or resumes the run."""
        command = [self.assay, "api", "--test_cpu=True", "--api_config_file=cases.txt", "--log_dir=run"]
        command += [f"--num_workers_per_gpu={self.random.choice((1, 2))}", "--quiet=True"]
        if self.way == "campaign":
            command = [self.assay, "run", "night.toml", "--foreground"]
        if self.way in MADE:
            words = ["chain.toml"] if self.way == "chain" else ["f.txt", "lite_train_lite_infer"]
            command = [self.assay, "chain", "run", *words, "--lenient", "--resume"]
        return self.spawn(command)

    def spawn(self, command):
        """Starts a program of the run."""
        environment = dict(os.environ, ASSAY_TEST=str(self.folder), TMPDIR=str(self.temp))
        environment["ASSAY_SERVE_TOKEN"] = "token"
        with open(self.folder / "output.txt", "ab") as output:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=environment,
            )

    def go(self):
        """Runs it to its end, then checks it."""
        left = self.random.randint(1, 5)
        pause = self.random.choice((0.3, 1.0, 3.0))  # seconds on average before each fault
        page = None
        for _ in range(MOST_STARTS):
            program = self.start()
            if self.way == "page" and page is None and (self.folder / "run/run.db").exists():
                page = self.spawn([self.assay, "serve", "run"])
            began, stopped = time.monotonic(), 0.0
            while program.poll() is None:
                if left > 0:
                    time.sleep(self.random.expovariate(1 / pause))
                    left -= 1
                    stopped += self.fault()
                    continue
                time.sleep(0.02)
                if time.monotonic() - began - stopped > HANG_S:
                    self.broken.append(f"hangs for {HANG_S} s")
                    self.show()
                    program.kill()
                    program.wait()
                    return self
            self.longest = max(self.longest, time.monotonic() - began - stopped)
            if program.returncode == 0 or (program.returncode == 1 and self.way not in MADE):
                break
        else:
            self.broken.append(f"did not end in {MOST_STARTS} starts")
        if self.way in MADE:
            self.check_stages()
        else:
            self.check(page)
        return self

    def check_stages(self):
        """Every stage has made its file, and nothing is left."""
        for name, text in MADE[self.way].items():
            file = self.folder / name
            if not file.exists() or file.read_text() != text:
                self.broken.append(f"no stage has made {name}")
        self.check_leftovers()

    def check_page(self, page):
        """A page that got no fault shows the run, and ends when it is asked to."""
        said = (self.folder / "output.txt").read_text()
        address = re.search(r"http://127.0.0.1:\d+/token/", said)
        if address and page.poll() is None:
            with urllib.request.urlopen(f"{address[0]}data.json", timeout=20) as answer:
                if answer.status != 200:
                    self.broken.append(f"the page answers {answer.status}")
        elif not any(self.faults[f"{number.name} page"] for number in ENDINGS):
            self.broken.append("the page has ended")
        page.terminate()
        page.wait(HANG_S)

    def check(self, page):
        """Every case has its one right verdict, and nothing is left."""
        if page is not None:
            self.check_page(page)
        with sqlite3.connect(f"file:{self.folder}/run/run.db?mode=ro", uri=True) as database:
            planned = database.execute("SELECT count(*) FROM planned").fetchone()[0]
        listing = {}
        for outcome in ("pass", "mismatch", "crash", "timeout", "oom", "error"):
            command = [self.assay, "report", "run", f"--list={outcome}"]
            listed = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            for line in listed.stdout.splitlines():
                if line in listing:
                    self.broken.append(f"twice: {line}")
                listing[line] = outcome
        if planned != len(self.expected):
            self.broken.append(f"{planned} cases planned")
        for line, outcome in self.expected.items():
            if listing.get(line) != outcome:
                self.broken.append(f"{line}: {listing.get(line)}, expected {outcome}")
        self.check_leftovers()

    def check_leftovers(self):
        """No process and no temporary file is left."""
        until = time.monotonic() + 15 + KEEP_S
        while (left := self.processes()) and any(left.values()) and time.monotonic() < until:
            time.sleep(0.1)
        if any(left.values()):
            self.broken.append(f"left processes: {dict(left)}")
        # The record of a kept server that a signal ended early goes when the next run starts another one.
        files = [str(path) for path in self.temp.rglob("*") if not path.is_dir() or "-lanes-" in path.name]
        kept_ended = any(self.faults[f"{number.name} kept"] for number in ENDINGS)
        files = [path for path in files if not (kept_ended and "/kept-" in path)]
        if files:
            self.broken.append(f"left files: {files}")


def main():
    """Runs all and prints the sums; exit code 1 if a rule was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("assay", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no more runs after this time")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    faults = collections.Counter()
    runs = broken = 0
    longest = 0.0

    def one(seed):
        return Run(options.assay, seed).go() if time.monotonic() < until else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed, run in enumerate(
            pool.map(one, range(options.seed, options.seed + options.runs)), options.seed
        ):
            if run is None:
                continue
            runs += 1
            faults += run.faults
            longest = max(longest, run.longest)
            for each in run.broken:
                print(f"seed {seed}: {each}", flush=True)
            if run.broken:
                broken += 1
                print(f"  see {run.folder}", flush=True)
            else:
                shutil.rmtree(run.folder.parent)
    print(f"{runs} runs from seed {options.seed}, {broken} broken, longest {longest:.1f} s")
    print(f"faults: {dict(faults)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
