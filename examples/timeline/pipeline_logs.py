"""Writes the job logs of a Paddle pipeline: workerlog.0 and workerlog.1, 4 micro batches, 3 steps (1F1B).

python3 pipeline_logs.py [FOLDER]
"""

import sys
from pathlib import Path

FORWARD, BACKWARD, OPTIMIZER = 4.0, 8.0, 2.0  # milliseconds
STAGES, MICRO_BATCHES, STEPS = 2, 4, 3


def order(stage):
    """One stage's jobs: forwards until the pipeline is full, then one forward, one backward."""
    ahead = STAGES - stage - 1
    jobs = [("forward", m) for m in range(ahead)]
    for m in range(MICRO_BATCHES - ahead):
        jobs += [("forward", m + ahead), ("backward", m)]
    jobs += [("backward", m) for m in range(MICRO_BATCHES - ahead, MICRO_BATCHES)]
    return jobs + [("optimizer", 0)]


def schedule(begin):
    """One step: (stage, type, micro batch, start, end) of each job, each as early as it may start."""
    ended, free = {}, [begin] * STAGES
    waiting = [order(stage) for stage in range(STAGES)]
    while any(waiting):
        for stage in range(STAGES):
            while waiting[stage]:
                kind, m = waiting[stage][0]
                source = {"forward": stage - 1, "backward": stage + 1}.get(kind, -1)
                if 0 <= source < STAGES and (kind, m, source) not in ended:
                    break
                start = max(free[stage], ended.get((kind, m, source), begin))
                end = start + {"forward": FORWARD, "backward": BACKWARD}.get(kind, OPTIMIZER)
                ended[kind, m, stage] = free[stage] = end
                waiting[stage].pop(0)
                yield stage, kind, m, start, end


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    logs = [[] for _ in range(STAGES)]
    now = 1_700_000_000_000.0  # milliseconds
    for _ in range(STEPS):
        jobs = list(schedule(now))
        for number, (stage, kind, m, start, end) in enumerate(jobs):
            logs[stage].append(
                f"I1120 10:20:30.123456 123 program_interpreter.cc:220] Profiler Info: Job ({number}), "
                f"type = {kind}, micro_batch_id = {m}, job_start_time = {start:.6f}, "
                f"job_end_time = {end:.6f}\n"
            )
        now = max(end for *_, end in jobs) + 1
    for stage, lines in enumerate(logs):
        (folder / f"workerlog.{stage}").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
