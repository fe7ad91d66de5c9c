"""Simulated clusters with a known fault: is the right one named, and is the promised gain true?

    simulated_clusters.py ASSAY [--clusters 200] [--seed 65] [--most-ranks 512] [--verbose] [--keep DIR]

Each cluster trains with a random mix of data, tensor, pipeline and expert parallelism. Its ranks run a graph
of host calls, kernels, collectives and transfers. A fault makes some of them longer. The truth comes from the
graph alone: it runs once with the fault and once without. `assay timeline analyze` gets the traces, as
PyTorch's profiler writes them, with clocks of hosts apart. Prints a table by parallelism and by fault; exit
code 1 if a figure of `AIMS` is missed.
Times are in microseconds.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simulated_training import FAULTS, PER_HOST, SIZES, Cluster, Training

AIMS = {"right": 0.98, "gain": 0.03, "gains": 0.98, "clock": 20.0}
LEAST = 0.002  # of a step: gains cannot be told better than kernels vary


def write(training: Training, begins: list[float], ends: list[float], folder: Path) -> None:
    """One trace for each rank."""
    c = training.cluster
    lines: list[list[str]] = [[] for _ in range(c.ranks)]

    def event(rank: int, category: str, name: str, begin: float, end: float, where: str, args: str) -> None:
        lines[rank].append(
            f'{{"ph":"X","cat":"{category}","name":"{name}",{where},"ts":{c.local(rank, begin):.3f},'
            f'"dur":{end - begin:.3f},"args":{{{args}}}}}'
        )

    for task, (rank, category, name, args) in enumerate(training.events):
        device = rank % PER_HOST
        if "stream" in args:
            where, args = f'"pid":{device},"tid":{args.split(",")[0][9:]}', f'"device":{device},{args}'
        else:
            where, args = (
                f'"pid":{1000 + rank},"tid":{1000 + rank}',
                f'"correlation":{task}' if category == "cuda_runtime" else "",
            )
        event(rank, category, name, begins[task], ends[task], where, args)
    for rank, name, first, last in training.jobs:
        event(
            rank,
            "user_annotation",
            name,
            begins[first],
            ends[last],
            f'"pid":{1000 + rank},"tid":{1000 + rank}',
            "",
        )
    for step, marks in enumerate(training.marks):
        for rank, mark in enumerate(marks):
            following = training.marks[step + 1][rank] if step + 1 < c.steps else None
            end = begins[following] - 3 if following is not None else ends[training.last[rank, "host"]] + 5
            if following is None and c.synchronous:
                end = max(end, ends[training.last[rank, "7"]])
            event(
                rank,
                "user_annotation",
                f"ProfilerStep#{c.first_step + step}",
                begins[mark],
                end,
                f'"pid":{1000 + rank},"tid":{1000 + rank}',
                "",
            )
    groups = {
        (kind, tuple(members))
        for kind in ("data", "tensor", "expert")
        for rank in range(c.ranks)
        if len(members := c.group(kind, rank)) > 1
    } | {
        ("pipeline", tuple(range(p, c.ranks, c.tensor * c.data)))
        for p in range(c.tensor * c.data)
        if c.stages > 1
    }
    config = [{"pg_name": f"{k}{m[0]}_{len(m)}", "pg_desc": k, "ranks": m} for k, m in sorted(groups)]
    for rank in range(c.ranks):
        mine = [g for g in config if rank in g["ranks"]]
        head = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank, "world_size": c.ranks, "pg_config": mine},
        }
        head["host_name"] = f"node{rank // PER_HOST}"  # type: ignore[assignment]
        text = json.dumps(head)[:-1] + ',"traceEvents":[\n' + ",\n".join(lines[rank]) + "]}"
        (folder / f"rank{rank}.json").write_text(text)


@dataclass
class Outcome:
    cluster: Cluster
    right: bool
    gain: float  # the error of the promised gain, as a part of the true one; nan: none promised
    clock: list[float]
    told: str


def analyze(assay: str, folder: Path) -> dict[str, object]:
    command = [assay, "timeline", "analyze", str(folder), "--format", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(ran.stderr)
    report: dict[str, object] = json.loads(ran.stdout)
    return report


CAUSES = {
    **dict.fromkeys(("gpu", "two_gpus", "host", "moving"), "slow GPU"),
    "gc": "host",
    "loader": "data loader",
    "copy": "copies",
    "work": "more work",
    "link": "slow link",
    "stage": "stage",
}


def judge(
    cluster: Cluster, report: dict[str, object], healthy: float, one: float | None, recorded: float
) -> Outcome:
    culprits: list[dict[str, object]] = report["culprits"]  # type: ignore[assignment]
    told = "; ".join(f"{c['name']}, {c['when']}: {c['cause']}" for c in culprits[:3])
    steps: list[dict[str, int]] = report["steps"]  # type: ignore[assignment]
    late = (
        cluster.fault in ("gc", "loader", "copy") and not cluster.synchronous
    )  # seen when the GPU has caught up
    paused = [i for i, s in enumerate(steps) if s["pause_ns"] > 0]
    nan = float("nan")
    if cluster.fault in ("balanced", "pause"):
        wanted = sorted(s - 1 for s in cluster.faulty)
        quiet = not culprits and "critical_stage" not in report and "slowest_machine" not in report
        if cluster.fault == "pause" and len(culprits) == 1 and not paused:
            one_step = culprits[0]["kind"] == "step" and culprits[0]["steps"] == 1
            quiet, paused = one_step, [culprits[0]["since_step"] - cluster.first_step]  # type: ignore[operator]
            wanted = wanted if paused == wanted else [w + 1 for w in wanted]
        return Outcome(
            cluster,
            quiet and paused == wanted,
            nan,
            [],
            told or f"pauses {paused}, {report.get('critical_stage')}",
        )
    if not culprits:
        return Outcome(cluster, False, nan, [], "nobody")
    first = culprits[0]
    right = set(first["ranks"]) == set(cluster.culprits)  # type: ignore[call-overload]
    stage_of_one = cluster.tensor * cluster.data == 1 and first["kind"] == "stage"
    cause = str(first["cause"]).replace("slower work", "slow GPU") if stage_of_one else str(first["cause"])
    right &= CAUSES[cluster.fault] in cause or (cluster.fault == "stage" and first["kind"] == "stage")
    right &= late or first["since_step"] == cluster.first_step + min(cluster.faulty)
    right &= late or first["steps"] == len(cluster.faulty)
    if "step_without_ns" not in first:
        return Outcome(cluster, right, nan, [], told + "; no gain")
    least = LEAST * recorded / max(recorded - healthy, 1e-9)
    error = abs(first["step_without_ns"] / 1e3 - healthy) / (recorded - healthy)  # type: ignore[operator]
    if one is not None and "step_without_one_ns" in first:
        error = max(error, abs(first["step_without_one_ns"] / 1e3 - one) / (recorded - healthy))  # type: ignore[operator]
    told += f"; without {first['step_without_ns'] / 1e3:.0f}, true {healthy:.0f} of {recorded:.0f}"  # type: ignore[operator]
    return Outcome(cluster, right, max(0.0, error - least), [], told)


def clock_errors(report: dict[str, object], training: Training, begins: list[float]) -> list[float]:
    """The errors of the ranks' begins of the all-reduces of gradients, against the group's first rank."""
    true = defaultdict(list)
    for task, meeting in enumerate(training.graph.meeting):
        if meeting >= 0 and '"Process Group Description":"data"' in training.events[task][3]:
            true[meeting].append(begins[task])
    found = defaultdict(list)
    for call in report["collectives"]:  # type: ignore[attr-defined]
        if call["group"] == "data":
            parts = sorted(call["parts"], key=lambda p: p["rank"])
            found[parts[0]["rank"]].append([p["begin_ns"] / 1e3 for p in parts])
    by_group = defaultdict(list)
    for meeting, parts in true.items():
        rank = training.events[training.graph.meetings[meeting][0]][0]
        by_group[rank].append(parts)
    errors = []
    for rank, calls in by_group.items():
        for mine, other in zip(calls, sorted(found[rank]), strict=False):
            errors += [abs((b - other[0]) - (a - mine[0])) for a, b in zip(mine, other, strict=False)]
    return errors


def simulate(assay: str, seed: str, most_ranks: int, keep: Path | None) -> Outcome:
    """One cluster whose fault costs a twenty-fifth of a step or more."""
    rng = random.Random(seed)
    sizes = [size for size in SIZES if size <= most_ranks]
    fault = FAULTS[int(seed.split()[1]) % len(FAULTS)]
    if fault == "host" and most_ranks < 4 * PER_HOST:
        fault = "gpu"
    least = {"host": 4 * PER_HOST, "link": 16, "moving": 8, "stage": 4, "two_gpus": 4}.get(fault, 4)
    while True:
        ranks = rng.choices(
            *zip(*((s, SIZES[s]) for s in sizes if s >= min(least, most_ranks)), strict=True)
        )[0]
        cluster = Cluster(rng, ranks, fault=fault)
        training = Training(cluster)
        begins, ends = training.graph.run(lambda _: False)

        def mean_step(mended: Callable[[int], bool], training: Training = training) -> float:
            first, last = training.graph.run(mended)
            return (max(last) - min(first)) / training.cluster.steps

        recorded, healthy = mean_step(lambda _: False), mean_step(lambda _: True)
        if fault in ("balanced", "pause") or recorded - healthy > recorded / 25:
            break
    one = min(mean_step(c.__eq__) for c in cluster.culprits) if fault == "two_gpus" else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write(training, begins, ends, folder)
        report = analyze(assay, folder)
    outcome = judge(cluster, report, healthy, one, recorded)
    outcome.clock = clock_errors(report, training, begins)
    return outcome


def table(outcomes: list[Outcome], title: str, key: Callable[[Outcome], str]) -> None:
    print(
        f"\n| {title} | clusters | ranks | right | gains | error of the gain: median | p95 | most |\n"
        + "|---" * 8
        + "|"
    )
    for name in [*dict.fromkeys(sorted(key(o) for o in outcomes)), "all"]:
        some = [o for o in outcomes if name in ("all", key(o))]
        gains = sorted(o.gain for o in some if o.gain == o.gain)
        shown = [
            f"{100 * gains[min(len(gains) - 1, int(q * len(gains)))]:.1f}%" if gains else ""
            for q in (0.5, 0.95, 1)
        ]
        sizes = [o.cluster.ranks for o in some]
        right = sum(o.right for o in some) / len(some)
        ranks = f"{min(sizes)} to {max(sizes)}"
        print(f"| {name} | {len(some)} | {ranks} | {right:.1%} | {len(gains)} | {' | '.join(shown)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=65)
    parser.add_argument("--most-ranks", type=int, default=512)
    parser.add_argument("--verbose", action="store_true", help="print each cluster that is missed")
    parser.add_argument("--keep", type=Path, help="write the traces of the first cluster here")
    options = parser.parse_args()
    outcomes = []
    for number in range(options.first, options.first + options.clusters):
        outcomes.append(simulate(options.assay, f"{options.seed} {number}", options.most_ranks, options.keep))
        o = outcomes[-1]
        if options.verbose and not (o.right and not o.gain > AIMS["gain"]):
            c = o.cluster
            steps = [step + c.first_step for step in sorted(c.faulty)]
            fault = f"{c.fault} ranks {c.culprits[:9]} steps {steps} x{c.factor:.2f}"
            print(
                f"{number}: {c.ranks} ranks, {c.kind}, {fault}: {o.told}, gain error {o.gain:.1%}", flush=True
            )
    table(outcomes, "parallelism", lambda o: o.cluster.kind)
    table(outcomes, "fault", lambda o: o.cluster.fault)
    clock = sorted(e for o in outcomes for e in o.clock)
    near = sum(e <= AIMS["clock"] for e in clock) / max(1, len(clock))
    print(f"\nclocks of hosts: {near:.2%} of begins within {AIMS['clock']} us")
    right = sum(o.right for o in outcomes) / len(outcomes)
    gains = [o.gain for o in outcomes if o.gain == o.gain]
    good = sum(g <= AIMS["gain"] for g in gains) / max(1, len(gains))
    told = f"right first {right:.1%}; gain within {AIMS['gain']:.0%}: {good:.1%}"
    print(f"{len(outcomes)} clusters, seed {options.seed}: {told}")
    return 0 if right >= AIMS["right"] and good >= AIMS["gains"] else 1


if __name__ == "__main__":
    sys.exit(main())
