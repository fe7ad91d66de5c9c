"""Runs scripts in one framework's Python, each in a process forked after the import of the framework.

    PYTHON forked.py FRAMEWORK JOBS SECONDS < scripts.json

Reads a JSON list of paths and prints one JSON object per script as it ends: path, exit status (negative: the
signal that ended it; null: it ran out of its SECONDS) and output. No operation runs before the fork, because
a child forked after one may hang.
"""

import importlib
import json
import os
import resource
import runpy
import signal
import sys
import tempfile
import time
import traceback

RAISED = 70  # the status of a script that raised; Python's own, 1, means that the bug shows


def main(framework: str, jobs: int, seconds: float, scripts: list[str]) -> None:
    importlib.import_module(framework)
    running: dict[int, tuple[str, float, str]] = {}  # pid -> script, deadline, output file
    with tempfile.TemporaryDirectory() as folder:
        while scripts or running:
            while scripts and len(running) < jobs:
                script = scripts.pop(0)
                output = os.path.join(folder, f"{len(scripts)}.txt")
                running[_fork(script, output)] = (script, time.monotonic() + seconds, output)
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in running:
                script, _, output = running.pop(pid)
                _tell(script, os.waitstatus_to_exitcode(status), output)
                continue
            for pid, (script, deadline, output) in list(running.items()):
                if time.monotonic() > deadline:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    del running[pid]
                    _tell(script, None, output)
            time.sleep(0.005)


def _fork(script: str, output: str) -> int:
    pid = os.fork()
    if pid > 0:
        return pid
    os.setsid()
    file = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = [script]
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        status = 1 if end.code is not None and not isinstance(end.code, int) else int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        status = RAISED
    sys.stdout.flush()
    os._exit(status)


def _tell(script: str, status: int | None, output: str) -> None:
    with open(output, errors="replace") as file:
        print(json.dumps({"script": script, "status": status, "output": file.read()[-20000:]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), json.load(sys.stdin))
