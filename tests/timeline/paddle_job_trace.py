"""Runs Paddle's own log-to-trace script on several folders: paddle_job_trace.py DEVICES FOLDER…

A folder with machineK folders is read as many machines. Imports Paddle once for all of them.
"""

import os
import sys

import paddle.distributed.auto_parallel.static.profiler_helper_static as script

devices = sys.argv[1]
listdir = os.listdir
# The script numbers machines in the order in which the file system lists them; make it stable.
script.os.listdir = lambda path: sorted(listdir(path))
for folder in sys.argv[2:]:
    sys.argv = ["profiler", "--devices", devices, "--log_dir", folder]
    if os.path.isdir(os.path.join(folder, "machine0")):
        sys.argv.append("--multi_machine")
    script.main()
