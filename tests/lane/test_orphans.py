"""What processes leave behind when they end, and that a subreaper finds it."""

import os
import subprocess
import sys

# A child starts a process in a session of its own and ends. Prints what two sweeps kill.
LEAVES = """
import os, subprocess, time
from assay.orphans import adopt, kill_others
adopt()
known = subprocess.Popen(["sleep", "60"])
child = os.fork()
if child == 0:
    subprocess.Popen(["sleep", "61"], start_new_session=True)
    os._exit(0)
os.waitpid(child, 0)
print(*kill_others({known.pid}))
while os.waitpid(-1, os.WNOHANG)[0] == 0:
    time.sleep(0.01)
print(*kill_others({known.pid}))
print(known.poll())
known.kill()
"""


def test_a_subreaper_kills_what_a_child_has_left_and_nothing_else(root):
    environment = {**os.environ, "PYTHONPATH": str(root / "python")}
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["sleep", "", "None"]), done.stderr
