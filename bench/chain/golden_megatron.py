"""Replays the public golden files of Megatron-LM as histories for `assay chain judge`.

usage: golden_megatron.py REPOSITORY ASSAY [--commit COMMIT] [--limit N]

REPOSITORY is a clone of NVIDIA/Megatron-LM with its branches. Each version of a golden file is a
night of a build of its own. A drift is the last version of a file, made by a commit that changed
golden files and nothing else. --commit replays one commit (ef35a440ad: the 61 files of issue 5061);
without it, all such commits of the main branch.

The repository has no reruns and no runs of earlier builds. So a drift is judged by its night first.
If that is suspect, the two answers that a run of the baseline build may give are played: the new
values (what moved is the environment, as the maintainers found) and, as the worst case, the old
ones.
"""

import argparse
import collections
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {"iteration-time": "time", "mem-allocated-bytes": "memory", "mem-max-allocated-bytes": "memory"}
Run = dict[str, object]


class Repository:
    """A git repository, read by commands."""

    def __init__(self, path: str) -> None:
        self.path = path

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-C", self.path, *words], check=True, capture_output=True, text=True
        ).stdout

    def changed(self, commit: str, states: str = "") -> list[str]:
        """The files that a commit changed; `states` such as M selects by the kind of change."""
        selection = [f"--diff-filter={states}"] if states else []
        return self.git("show", "--name-only", "--format=", *selection, commit).split()

    def versions(self, commit: str, path: str) -> list[tuple[str, str]]:
        """Commits that changed a file up to `commit`, the oldest first, with their dates."""
        lines = self.git("log", "--format=%H %cI", commit, "--", path).split("\n")
        return [(line.split()[0], line.split()[1]) for line in reversed(lines) if line]

    def refreshes(self) -> list[str]:
        """Commits of the main branch that changed golden files and nothing else."""
        log = self.git("log", "--format=%H", "--no-merges", "main", "--", "*golden_values*.json")
        return [
            commit for commit in log.split() if all("golden_values" in file for file in self.changed(commit))
        ]


def metrics_of(text: str) -> dict[str, dict[str, object]]:
    """The metrics of a golden file that assay has, too: losses, time of an iteration, memory."""
    metrics: dict[str, dict[str, object]] = {}
    try:
        golden = json.loads(text)
    except ValueError:
        return metrics
    for name, series in golden.items() if isinstance(golden, dict) else ():
        kind = KINDS.get(name, "loss" if name.endswith("loss") else None)
        if kind is None or not isinstance(series, dict) or not isinstance(series.get("values"), dict):
            continue
        values = [float(value) for value in series["values"].values()]
        values = [value for value in values if math.isfinite(value)]
        if kind == "memory":
            values = [value / 2**20 for value in values]
        if kind != "loss" and values:
            rest = values[1:] or values
            values = [sum(rest) / len(rest)]
        if values:
            metrics[name] = {"kind": kind, "values": values}
    return metrics


class Judge:
    """Asks assay for the states of a history."""

    def __init__(self, assay: str) -> None:
        self.assay = assay
        self.folder = tempfile.TemporaryDirectory()

    def ask(self, runs: list[Run]) -> list[dict[str, object]]:
        file = Path(self.folder.name) / "golden.json"
        head = {"format": "assay-chain-golden", "version": 1, "model": "m", "mode": "t", "device": "d"}
        file.write_text(json.dumps({**head, "runs": runs}))
        answer = subprocess.run(
            [self.assay, "chain", "judge", str(file), "--json"], capture_output=True, text=True
        )
        if answer.returncode not in (0, 1, 4):
            sys.exit(answer.stderr)
        return [metric for metric in json.loads(answer.stdout)[0]["metrics"] if metric["state"] != "missing"]

    def states(self, runs: list[Run]) -> set[str]:
        return {str(metric["state"]) for metric in self.ask(runs)}


def run_of(time: str, build: str, purpose: str, metrics: dict[str, dict[str, object]]) -> Run:
    return {"time": time, "build": build, "purpose": purpose, "metrics": metrics}


def shape_of(metrics: dict[str, dict[str, object]]) -> dict[str, int]:
    """The number of values of each metric."""
    return {name: len(metric["values"]) for name, metric in metrics.items()}


def history_of(repository: Repository, judge: Judge, commit: str, path: str) -> list[Run]:
    """The nights of a file up to a commit. A version that was not good was accepted by its commit."""
    runs: list[Run] = []
    for version, time in repository.versions(commit, path):
        try:
            metrics = metrics_of(repository.git("show", f"{version}:{path}"))
        except subprocess.CalledProcessError:  # the commit removed the file
            runs.clear()
            continue
        if runs and shape_of(metrics) != shape_of(runs[-1]["metrics"]):  # another test of that name
            runs.clear()
        if runs and judge.states(runs) != {"good"}:
            runs[-1]["accept"] = True
        if metrics:
            runs.append(run_of(time, version[:10], "nightly", metrics))
    return runs


def confirmed(runs: list[Run], old: bool) -> list[Run]:
    """The history with what the judge asks for, if runs repeat what they gave."""
    new = runs[-1]
    before = runs[-2]
    baseline = before if old else new
    again = [run_of("again", str(new["build"]), "rerun", new["metrics"])] * 2
    base = [run_of("base", str(before["build"]), "baseline", baseline["metrics"])] * 2
    return runs + again + base + again


def planted(runs: list[Run]) -> dict[str, list[Run]]:
    """The history before a drift, repeated once more with 1% more loss, and with 3% more time."""
    histories = {}
    for kind, factor in (("loss", 1.01), ("time", 1.03)):
        metrics = {
            name: {
                "kind": metric["kind"],
                "values": [value * (factor if metric["kind"] == kind else 1) for value in metric["values"]],
            }
            for name, metric in runs[-2]["metrics"].items()
        }
        if kind in {metric["kind"] for metric in metrics.values()}:
            histories[kind] = runs[:-1] + [run_of("planted", "planted", "nightly", metrics)]
    return histories


def largest_change(runs: list[Run]) -> float:
    """The largest relative change of a loss's mean."""
    changes = [0.0]
    for name, metric in runs[-1]["metrics"].items():
        old = runs[-2]["metrics"][name]["values"]
        if metric["kind"] == "loss" and sum(old) != 0:
            changes.append(abs(sum(metric["values"]) / sum(old) - 1))
    return max(changes)


def replay(repository: Repository, judge: Judge, commits: list[str], limit: int) -> None:
    count: collections.Counter[str] = collections.Counter()
    nights: list[int] = []
    changes: list[float] = []
    for commit in commits:
        for path in repository.changed(commit, "M"):
            if count["files"] >= limit or not path.endswith(".json"):
                continue
            count["files"] += 1
            runs = history_of(repository, judge, commit, path)
            if len(runs) < 2:
                count["without a comparable version before"] += 1
                continue
            count["drifts"] += 1
            nights.append(len(runs) - 1)
            changes.append(largest_change(runs))
            answer = judge.ask(runs)
            for metric in answer:
                if metric["state"] != "good":
                    count["suspect in " + str(metric["metric"]).split(",")[0]] += 1
            if {metric["state"] for metric in answer} != {"good"}:
                count["suspect"] += 1
                for old, what in ((False, "it, too"), (True, "the old values")):
                    blamed = "regression" in judge.states(confirmed(runs, old))
                    count[f"blamed if the baseline build has {what}"] += blamed
            for kind, history in planted(runs).items():
                count[f"{kind} planted"] += 1
                count[f"{kind} planted: suspect"] += judge.states(history) != {"good"}
    for what, number in sorted(count.items()):
        print(f"{what}: {number}")
    if nights:
        nights.sort()
        changes.sort()
        print(f"versions before: median {nights[len(nights) // 2]}, most {nights[-1]}")
        print(f"change of a loss: median {changes[len(changes) // 2]:.2g}, largest {changes[-1]:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("repository")
    parser.add_argument("assay")
    parser.add_argument("--commit")
    parser.add_argument("--limit", type=int, default=10**9)
    arguments = parser.parse_args()
    repository = Repository(arguments.repository)
    commits = [arguments.commit] if arguments.commit else repository.refreshes()
    print(f"commits: {len(commits)}")
    replay(repository, Judge(arguments.assay), commits, arguments.limit)


if __name__ == "__main__":
    main()
