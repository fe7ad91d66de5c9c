"""`assay timeline record`, as a user calls it: what each way to limit a recording leaves in the trace."""

import json
import subprocess
import sys

import pytest
from tree import ASSAY, ROOT

STEPS = """
import assay, time
for number in assay.steps(range(6)):
    with assay.job("forward", micro_batch=number):
        pass
"""
FLAG = """
import assay
for number in assay.steps(range(6)):
    if number == 2: assay.start()
    if number == 4: assay.stop()
    with assay.job("forward", micro_batch=number):
        pass
"""
SECONDS = """
import assay, time
began = time.time()
for number in range(4):
    with assay.job("forward", micro_batch=number):
        pass
    time.sleep(max(0, began + 0.7 * (number + 1) - time.time()))
assert time.time() - began < 3.4, "the machine stalled"
"""
PADDLES = """
import assay
for number in range(10):
    with assay.job_schedule_profiler_range(number, 3, 5) as recorded:
        assert recorded == (3 <= number < 5)
        with assay.job("forward", micro_batch=number):
            pass
raise SystemExit("not ended after its range")
"""
FLAGS = """
import os, assay
assert os.environ["FLAGS_auto_parallel_profiler"] == "1"
with assay.job("forward", micro_batch=0):
    pass
"""


@pytest.fixture
def record(tmp_path):
    """Records a Python program; gives the exit code, and the names of the merged trace's events."""
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")

    def run(options, program):
        out = tmp_path / "recording"
        source = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})" + program
        command = [ASSAY, "timeline", "record", *options, "--out", out, "--", sys.executable, "-c", source]
        done = subprocess.run(command, capture_output=True, text=True)
        files = list(out.glob("*.assayrec"))
        if not files:
            return done, []
        merge = [ASSAY, "timeline", "merge", *files, "--out", tmp_path / "merged"]
        subprocess.run(merge, check=True, capture_output=True)
        events = json.loads((tmp_path / "merged" / "pipeline_profile.json").read_text())["traceEvents"]
        names = [event["name"] for event in events if event["ph"] == "X"]
        return done, sorted(name for name in names if not name.startswith("step"))

    return run


def jobs(*numbers):
    return [f"forward@{number}" for number in numbers]


@pytest.mark.parametrize(
    ("options", "program", "expected"),
    [
        ([], STEPS, jobs(0, 1, 2, 3, 4, 5)),
        (["--steps", "2:4"], STEPS, jobs(2, 3)),
        (["--steps", ":2"], STEPS, jobs(0, 1)),
        (["--steps", "4:"], STEPS, jobs(4, 5)),
        (["--job_schedule_profiler_range", "1,3"], STEPS, jobs(1, 2)),
        (["--paused"], STEPS, []),
        (["--paused"], FLAG, jobs(2, 3)),
        (["--seconds", "1:2"], SECONDS, jobs(2)),
        ([], PADDLES, jobs(3, 4)),
        (["--auto_parallel_profiler"], FLAGS, jobs(0)),
    ],
)
def test_what_is_recorded(record, options, program, expected):
    done, names = record(options, program)
    if "the machine stalled" in done.stderr:
        pytest.skip("the machine stalled")
    assert done.returncode == 0, done.stderr
    assert names == expected


@pytest.mark.parametrize("option", ["--steps", "--seconds", "--job_schedule_profiler_range"])
@pytest.mark.parametrize("value", ["5", "4:2", "3:3", "a:b", "1:2:3", "1.5:2", ""])
def test_a_window_that_is_none_is_refused(record, option, value):
    done, names = record([f"{option}={value}"], STEPS)
    assert done.returncode == 2, done.stderr
    assert names == []


def test_the_commands_own_end_is_passed_on(record):
    assert record([], "; sys.exit(7)")[0].returncode == 7
    assert record([], "; import os; os.kill(os.getpid(), 15)")[0].returncode == 128 + 15
