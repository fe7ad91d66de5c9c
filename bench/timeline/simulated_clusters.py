"""Simulated clusters: how near related clocks are, and whether who is slow is named.

    simulated_clusters.py ASSAY [--ranks 64] [--runs 20] [--seed 1] [--kinds clocks,balanced,…]

Writes the traces of a data-parallel run, as PyTorch's profiler does, with random clocks, kernel
times and late leavers, runs `assay timeline analyze --format json` and compares its answers with
what was put in. Times are in microseconds. Prints one line a kind; exit code 1 if a figure of the
issue is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

STEPS = 12
PER_HOST = 8
LAYERS = 4
STAGES = 4
MICRO_BATCHES = 8
GEMM = 40_000.0
KINDS = ("clocks", "balanced", "rank", "host", "link", "loader", "stage")


@dataclass
class Cluster:
    """What is wrong in one run; the truth that the answer is compared with."""

    ranks: int
    rng: random.Random
    kind: str
    culprit: set[int] = field(default_factory=set)
    since: int = 0

    def __post_init__(self) -> None:
        rng = self.rng
        hosts = self.ranks // PER_HOST
        self.skew = [0.0] * self.ranks
        self.drift = [0.0] * self.ranks
        for host in range(hosts):
            skew, drift = rng.uniform(-50_000, 50_000), rng.uniform(-20e-6, 20e-6)
            for rank in range(host * PER_HOST, (host + 1) * PER_HOST):
                self.skew[rank], self.drift[rank] = (0.0, 0.0) if host == 0 else (skew, drift)
        pick = rng.randrange(self.ranks)
        if self.kind in ("rank", "loader"):
            self.culprit = {pick}
        elif self.kind == "host":
            first = pick // PER_HOST * PER_HOST
            self.culprit = set(range(first, first + PER_HOST))
        elif self.kind == "link":
            first = pick // PER_HOST * PER_HOST
            self.culprit = set(range(first, first + PER_HOST))
        elif self.kind == "stage":
            stage = rng.randrange(STAGES)
            self.culprit = {r for r in range(self.ranks) if r % STAGES == stage}
        self.since = rng.randrange(0, STEPS // 2)
        self.factor = rng.uniform(1.15, 1.6)

    def local(self, rank: int, time: float) -> float:
        return time - self.skew[rank] - self.drift[rank] * time

    def slow(self, rank: int, step: int) -> bool:
        return rank in self.culprit and step >= self.since


class Rank:
    """The events of one rank, on its own clock."""

    def __init__(self, cluster: Cluster, rank: int) -> None:
        self.cluster, self.rank = cluster, rank
        self.events: list[dict[str, object]] = []
        self.correlation = 0

    def host(self, name: str, begin: float, end: float, category: str = "user_annotation") -> None:
        at = self.cluster.local
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1000 + self.rank,
                "tid": 1,
                "ts": round(at(self.rank, begin), 3),
                "dur": round(end - begin, 3),
            }
        )

    def kernel(
        self, name: str, launched: float, begin: float, end: float, args: dict[str, object] | None = None
    ) -> None:
        self.correlation += 1
        self.host("cudaLaunchKernel", launched, launched + 3, "cuda_runtime")
        self.events[-1]["args"] = {"correlation": self.correlation}
        at = self.cluster.local
        self.events.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "pid": self.rank % PER_HOST,
                "tid": 7,
                "ts": round(at(self.rank, begin), 3),
                "dur": round(end - begin, 3),
                "args": {
                    "device": self.rank % PER_HOST,
                    "stream": 7,
                    "correlation": self.correlation,
                    **(args or {}),
                },
            }
        )


def group_args(name: str, ranks: list[int], elements: int) -> dict[str, object]:
    return {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": len(ranks),
        "dtype": "Float",
        "Process Group Name": name,
        "Process Group Description": name,
        "Process Group Ranks": str(ranks),
    }


def simulate(cluster: Cluster) -> tuple[list[Rank], list[float]]:
    """The ranks and the true begin of each rank's collectives, in their order."""
    rng = cluster.rng
    ranks = [Rank(cluster, r) for r in range(cluster.ranks)]
    groups = [list(range(h, h + PER_HOST)) for h in range(0, cluster.ranks, PER_HOST)]
    world = list(range(cluster.ranks))
    now = [1_000_000.0 + rng.uniform(0, 50) for _ in world]
    truth: list[float] = []
    for step in range(STEPS):
        begin = list(now)
        for r in world:
            loader = rng.uniform(40, 60)
            if cluster.kind == "loader" and cluster.slow(r, step):
                loader += (cluster.factor - 1) * 10 * GEMM
            ranks[r].host("enumerate(DataLoader)#_Iter.__next__", now[r] + 1, now[r] + loader)
            now[r] += loader + rng.uniform(5, 15)
        for layer in range(LAYERS):
            for r in world:
                took = GEMM * rng.gauss(1, 0.01)
                if cluster.kind in ("rank", "host") and cluster.slow(r, step):
                    took *= cluster.factor
                ranks[r].kernel(f"gemm_{layer}", now[r] - 8, now[r], now[r] + took)
                now[r] += took + rng.uniform(2, 6)
            for g, members in enumerate(groups):
                together = max(now[r] for r in members)
                transfer = GEMM / 2 * rng.gauss(1, 0.01)
                if cluster.kind == "link" and members[0] in cluster.culprit and step >= cluster.since:
                    transfer *= 1 + 2 * (cluster.factor - 1)
                finish(ranks, now, truth, members, together + transfer, f"host{g}", 262_144, rng)
        finish(ranks, now, truth, world, max(now) + 1.5 * GEMM * rng.gauss(1, 0.01), "world", 1 << 22, rng)
        for r in world:
            ranks[r].host(f"ProfilerStep#{step}", begin[r], now[r])
            now[r] += rng.uniform(3, 10)
    return ranks, truth


def simulate_pipelines(cluster: Cluster) -> tuple[list[Rank], list[float]]:
    """1F1B over STAGES stages, of which one is slow, in ranks / STAGES data-parallel groups."""
    rng = cluster.rng
    ranks = [Rank(cluster, r) for r in range(cluster.ranks)]
    now = [1_000_000.0 + rng.uniform(0, 50) for _ in ranks]
    truth: list[float] = []
    for step in range(STEPS):
        begin = list(now)
        for first in range(0, cluster.ranks, STAGES):
            run_pipeline(cluster, ranks, now, first, step)
        finish(ranks, now, truth, list(range(cluster.ranks)), max(now) + GEMM, "world", 1 << 22, rng)
        for r in range(cluster.ranks):
            ranks[r].host(f"ProfilerStep#{step}", begin[r], now[r])
            now[r] += rng.uniform(3, 10)
    return ranks, truth


def run_pipeline(cluster: Cluster, ranks: list[Rank], now: list[float], first: int, step: int) -> None:
    """One step of the pipeline whose first stage is rank `first`."""
    orders = []
    for stage in range(STAGES):
        warm = min(MICRO_BATCHES, STAGES - stage - 1)
        order = [("Forward", m) for m in range(warm)]
        for m in range(MICRO_BATCHES):
            if warm + m < MICRO_BATCHES:
                order.append(("Forward", warm + m))
            order.append(("Backward", m))
        orders.append(order)
    done: dict[tuple[str, int, int], float] = {}
    at = [0] * STAGES
    host = [now[first + s] for s in range(STAGES)]
    while any(at[s] < len(orders[s]) for s in range(STAGES)):
        for stage in range(STAGES):
            while at[stage] < len(orders[stage]):
                name, micro = orders[stage][at[stage]]
                source = stage - 1 if name == "Forward" else stage + 1
                ready = 0.0 if source in (-1, STAGES) else done.get((name, micro, source), -1.0)
                if ready < 0:
                    break
                rank = first + stage
                took = GEMM / 4 * (1 if name == "Forward" else 2) * cluster.rng.gauss(1, 0.01)
                took *= cluster.factor if cluster.slow(rank, step) else 1
                begin = max(now[rank], ready) + cluster.rng.uniform(2, 6)
                ranks[rank].host(f"{name} {micro}", host[stage], host[stage] + 20)
                ranks[rank].kernel(f"gemm_{name}", host[stage] + 5, begin, begin + took)
                host[stage] += 25
                now[rank] = begin + took
                done[(name, micro, stage)] = now[rank]
                at[stage] += 1


def finish(
    ranks: list[Rank],
    now: list[float],
    truth: list[float],
    members: list[int],
    end: float,
    name: str,
    elements: int,
    rng: random.Random,
) -> None:
    """A collective: every member begins at its own time and leaves within the tail."""
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    for r in members:
        left = end + abs(rng.gauss(0, 4)) + (rng.uniform(20, 200) if rng.random() < 0.02 else 0)
        ranks[r].kernel(kernel, now[r] - 8, now[r], left, group_args(name, members, elements))
        if name == "world":
            truth.append(now[r])
        now[r] = left


def write(ranks: list[Rank], folder: Path, hosts: bool, pipelined: bool) -> None:
    for rank in ranks:
        trace: dict[str, object] = {
            "schemaVersion": 1,
            "deviceProperties": [],
            "distributedInfo": {
                "rank": rank.rank,
                "world_size": len(ranks),
                "pg_config": [
                    {"pg_name": f"pp{p}", "pg_desc": "pp", "ranks": list(range(p, p + STAGES))}
                    for p in range(0, len(ranks), STAGES)
                    if pipelined
                ],
            },
            "traceEvents": rank.events,
        }
        if hosts:
            trace["host_name"] = f"node{rank.rank // PER_HOST}"
        (folder / f"rank{rank.rank}.json").write_text(json.dumps(trace))


def analyze(assay: str, folder: Path) -> dict[str, object]:
    ran = subprocess.run(
        [assay, "timeline", "analyze", str(folder), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise SystemExit(ran.stderr)
    result: dict[str, object] = json.loads(ran.stdout)
    return result


def clock_errors(report: dict[str, object], truth: list[float], ranks: int) -> list[float]:
    """The error of each begin of the collectives of all ranks, against the first rank's clock."""
    begins: list[float] = []
    for call in report["collectives"]:  # type: ignore[attr-defined]
        if call["group"] == "world":
            begins += [part["begin_ns"] / 1e3 for part in sorted(call["parts"], key=lambda p: p["rank"])]
    errors = []
    for at in range(0, len(begins), ranks):
        for rank in range(ranks):
            errors.append(abs((begins[at + rank] - begins[at]) - (truth[at + rank] - truth[at])))
    return errors


def named_right(report: dict[str, object], cluster: Cluster) -> bool:
    culprits = report["culprits"]
    if cluster.kind in ("clocks", "balanced"):
        return not culprits
    if not culprits:
        return False
    first = culprits[0]  # type: ignore[index]
    expected = {"loader": "rank", "stage": "stage"}.get(cluster.kind, cluster.kind)
    return first["kind"] == expected and set(first["ranks"]) == cluster.culprit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    missed = False
    for kind in options.kinds.split(","):
        right, since, errors = 0, 0, []
        for run in range(options.runs):
            rng = random.Random(f"{options.seed} {kind} {run}")
            cluster = Cluster(options.ranks, rng, kind)
            ranks, truth = (simulate_pipelines if kind == "stage" else simulate)(cluster)
            with tempfile.TemporaryDirectory() as folder:
                write(ranks, Path(folder), hosts=kind != "clocks", pipelined=kind == "stage")
                report = analyze(options.assay, Path(folder))
            right += named_right(report, cluster)
            culprits = report["culprits"]
            since += bool(culprits) and culprits[0]["since_step"] == cluster.since  # type: ignore[index]
            errors += clock_errors(report, truth, options.ranks)
        errors.sort()
        within = sum(e <= 20 for e in errors) / len(errors)
        print(
            f"{kind}: {options.runs} runs of {options.ranks} ranks, seed {options.seed}: right "
            f"{right / options.runs:.1%}, first step right {since / options.runs:.1%}; clock error "
            f"median {errors[len(errors) // 2]:.1f} us, p99 {errors[len(errors) * 99 // 100]:.1f} us, "
            f"within 20 us {within:.2%}",
            flush=True,
        )
        missed |= within < 0.99 or right / options.runs < (0.99 if kind in ("clocks", "balanced") else 0.98)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
