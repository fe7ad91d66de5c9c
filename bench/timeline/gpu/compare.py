"""GPU intervals of jobs as assay and as PyTorch's profiler tell them, each against CUDA events.

    compare.py ASSAY FOLDER EVENTS    a folder of recordings, or of the profiler's kineto.P.M.RANK.json

Both cannot record one run, since CUPTI has room for one; the events that bracket each job on its stream
are in both runs, and are the common ruler. Prints how much longer than the interval the events say it was.
"""

import bisect
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


def recorded(assay, folder):
    """{(device, job, micro batch): [(begin, end) in µs, by time]} by `assay timeline merge`."""
    jobs = {}
    with tempfile.TemporaryDirectory() as out:
        files = sorted(glob.glob(os.path.join(folder, "*.assayrec")))
        subprocess.run([assay, "timeline", "merge", *files, "--out", out], check=True, capture_output=True)
        with open(os.path.join(out, "pipeline_profile.json")) as file:
            events = json.load(file)["traceEvents"]
    open_jobs = {}
    for event in events:
        track = re.fullmatch(r"GPU:(\d+) jobs", str(event.get("tid")))
        if not track:
            continue
        name = re.sub(r"[@_ ]?\d+$", "", event["name"])
        key = int(track[1]), name
        if event["ph"] == "B":
            open_jobs.setdefault(key, []).append(event["ts"])
        elif event["ph"] == "E":
            jobs.setdefault(key, []).append((open_jobs[key].pop(), event["ts"]))
    return {key: sorted(intervals) for key, intervals in jobs.items()}


def profiled(folder):
    """The same from PyTorch's profiler: the kernels that were launched while a job's annotation was open."""
    jobs = {}
    for path in glob.glob(os.path.join(folder, "kineto.*.json")):
        rank = int(path.split(".")[-2])
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        work = {}
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                span = event["ts"], event["ts"] + event["dur"]
                work.setdefault(event["args"]["correlation"], []).append(span)
        calls = sorted(
            (event["ts"], event["args"]["correlation"])
            for event in events
            if event.get("cat") in ("cuda_runtime", "cuda_driver")
            and event["args"].get("correlation") in work
        )
        for event in events:
            name, at, _ = event.get("name", "").partition("@")
            if event.get("cat") != "user_annotation" or not at:
                continue
            first = bisect.bisect_left(calls, (event["ts"],))
            last = bisect.bisect_right(calls, (event["ts"] + event["dur"],))
            spans = [span for _, correlation in calls[first:last] for span in work[correlation]]
            jobs.setdefault((rank, name), []).append((min(b for b, _ in spans), max(e for _, e in spans)))
    return {key: sorted(intervals) for key, intervals in jobs.items()}


def main():
    assay, folder, events = sys.argv[1:]
    jobs = recorded(assay, folder) if glob.glob(os.path.join(folder, "*.assayrec")) else profiled(folder)
    for wanted in ("forward", "backward"):
        rest, lengths = [], []
        for path in glob.glob(f"{events}.*.json"):
            with open(path) as file:
                rows = [row for row in json.load(file) if row[2] == wanted]
            intervals = jobs[rows[0][0], wanted]
            if len(rows) != len(intervals):
                sys.exit(f"{path}: {len(rows)} jobs by events, {len(intervals)} recorded")
            rest += [row[4] - (end - begin) for row, (begin, end) in zip(rows, intervals, strict=True)]
            lengths += [end - begin for begin, end in intervals]
        rest.sort()
        lengths.sort()
        low, middle, high = (rest[int(share * (len(rest) - 1))] for share in (0.05, 0.5, 0.95))
        jobs_of = f"{os.path.basename(folder):8} {wanted:8} {len(rest):4} jobs of"
        print(
            f"{jobs_of} {lengths[len(lengths) // 2]:8.1f} us; events say longer by "
            f"{low:6.2f} (5%) {middle:6.2f} (50%) {high:6.2f} (95%) us"
        )


if __name__ == "__main__":
    main()
