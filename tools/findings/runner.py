"""Runs the scripts of findings against the installed frameworks."""

import functools
import json
import os
import pathlib
import subprocess
import tempfile
from dataclasses import dataclass

from model import ROOT, Finding

LIMIT = 120  # seconds per script; Inductor compiles for 10 to 40 on two busy cores
_FORKED = pathlib.Path(__file__).with_name("forked.py")


@dataclass(frozen=True)
class Run:
    status: int | None  # exit status; negative: a signal; None: out of time
    output: str

    @property
    def verdict(self) -> str:
        """The result in words."""
        known = {1: "the bug shows", 0: "the bug is gone", None: f"no result within {LIMIT} s"}
        return known.get(self.status, f"the script is broken: status {self.status}")


def interpreter(framework: str) -> pathlib.Path:
    """The Python that has the framework, as tools/setup makes it."""
    return ROOT / ".venv" / framework / "bin" / "python"


@functools.cache
def installed_version(framework: str) -> str:
    """The version that the framework reports, without its local part: "2.13.0" of "2.13.0+cpu"."""
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    package = {"paddle": "paddlepaddle"}.get(framework, framework)
    done = subprocess.run(
        [interpreter(framework), "-c", code, package], capture_output=True, text=True, check=True
    )
    return done.stdout.strip().split("+")[0]


def run(findings: list[Finding], jobs: int = 2) -> dict[str, Run]:
    """Runs each script in its own process, at most `jobs` at a time per framework; by the finding's name."""
    started = []
    with tempfile.TemporaryDirectory() as folder:
        for framework in sorted({each.framework for each in findings}):
            scripts = []
            for each in findings:
                if each.framework == framework:
                    file = pathlib.Path(folder, f"{each.name}.py")
                    file.write_text(each.script)
                    scripts.append(str(file))
            server = subprocess.Popen(
                [interpreter(framework), _FORKED, framework, str(jobs), str(LIMIT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
            )
            server.stdin.write(json.dumps(scripts))
            server.stdin.close()
            started.append(server)
        results = {}
        for server in started:
            for line in server.stdout:
                told = json.loads(line)
                results[pathlib.Path(told["script"]).stem] = Run(told["status"], told["output"])
            if server.wait() != 0:
                raise RuntimeError(f"the fork server ended with status {server.returncode}")
    return results
