"""`assay blame`: replays captured calls on a lane against float64, and ranks the operators that are wrong.

`assay api` judges; this module reads its report and puts it together with what the capture knows of each
call: how often, where in the program, and by which kernels.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any

from assay.capture import corpus

USAGE, TROUBLE, NOTHING = 2, 3, 4  # src/cli/exit_code.h
FAILED = "mismatch crash test_error timeout oom reference_error sanitizer unstable".split()
# Values that training has. NaN, infinities and numbers near overflow come after a fault, not before it.
VALUES = "usual,exact,layout,constant"
MOST_PLACES = 3
MOST_SHOWN = 5
MANY = 1 << 20
# Functions that make or fill tensors: their results show what they were told.
BYSTANDERS = re.compile(
    r"(new_)?(zeros|ones|full|empty|eye|arange|range|linspace|logspace|rand|randn|randint|randperm|normal|tensor"
    r"|scalar_tensor|as_tensor|empty_strided|uniform_|normal_|fill_|zero_|fill|zero)(_like)?$"
)


class Judged:
    """A run of `assay api`: the outcome of each case, and its findings."""

    def __init__(self, assay: str, folder: str) -> None:
        self.folder = folder
        report = subprocess.run(
            [assay, "report", folder, "--json", "--every-failure", "--against=known", "--fail-on=none"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.report = json.loads(report.stdout)
        self.failed: dict[str, str] = {}
        for outcome in FAILED:
            if self.report["outcomes"].get(outcome):
                listed = subprocess.run(
                    [assay, "report", folder, "--list", outcome], capture_output=True, text=True, check=False
                )
                self.failed |= {plain(text): outcome for text in listed.stdout.splitlines()}
        judged = ("pass", *FAILED)
        self.verdicts = sum(self.report["outcomes"].get(outcome, 0) for outcome in judged)


def plain(text: str) -> str:
    """A case without what its canonical text may write differently."""
    return re.sub(r",(?=\))|\s|list(?=\[)|,is_contiguous=\w+|math\.", "", text.replace(", ", ","))


def api_of(text: str) -> str:
    """The API of a case."""
    return text.partition("(")[0]


def stem_of(api: str) -> str:
    """The operator's bare name: that of a method, of a function and of an overload are equal."""
    parts = api.split(".")
    if api.startswith("torch.ops.") and len(parts) > 3:
        parts = parts[:4]
    return parts[-1].strip("_")


class Suspect:
    """An API that failed, with what speaks for it."""

    def __init__(self, api: str, kind: str) -> None:
        self.api = api
        self.kind = kind
        self.cases: list[str] = []
        self.failed: list[str] = []
        self.calls = 0
        self.steps = 0
        self.first = 0
        self.places: Counter[tuple[str, str]] = Counter()
        self.kernels: set[str] = set()
        self.finding: dict[str, Any] = {}
        self.follows = ""  # the operator whose fault explains this one

    def score(self, kernel: str) -> tuple[Any, ...]:
        """Sorts the most likely culprit first."""
        share = len(self.failed) / max(1, len(self.cases))
        shares = any(stem_of(each) == kernel for each in self.kernels)
        most_direct = len(self.kernels) if shares else MANY
        named_so = kernel == stem_of(self.api)
        return (bool(self.follows), not named_so, most_direct, -share, -self.calls, self.api)


def suspects_of(
    cases: dict[str, dict[str, Any]], failed: dict[str, str], findings: list[dict[str, Any]], kind: str
) -> list[Suspect]:
    """The APIs that failed, the most likely culprit first."""
    known = set(map(plain, cases))
    cases = cases | {text: {} for text in failed if text not in known}
    found: dict[str, Suspect] = {}
    inside: dict[str, set[str]] = defaultdict(set)
    for text, note in cases.items():
        api = api_of(text)
        if BYSTANDERS.search(api.rpartition(".")[2]):
            continue
        suspect = found.setdefault(api, Suspect(api, kind))
        suspect.cases.append(text)
        if plain(text) not in failed:
            continue
        suspect.failed.append(text)
        suspect.calls += note.get("calls", 0)
        suspect.steps = max(suspect.steps, note.get("steps", 0))
        suspect.first = min(suspect.first or note.get("first", 0), note.get("first", 0))
        suspect.kernels |= set(note.get("kernels", ()))
        for frames, module, calls in note.get("at", ()):
            suspect.places[" < ".join(frames), module] += calls
        for outer in note.get("in", ()):
            inside[outer].add(api)
    guilty = [suspect for suspect in found.values() if suspect.failed]
    for suspect in guilty:
        inner = inside.get(suspect.api, set()) - {suspect.api}
        suspect.follows = min(inner, default="")
        suspect.finding = next((each for each in findings if each["api"] == suspect.api), {})
    kernel = _kernel_of(cases, failed)
    return sorted(guilty, key=lambda suspect: suspect.score(kernel))


def _kernel_of(cases: dict[str, dict[str, Any]], failed: dict[str, str]) -> str:
    """The kernel that the failed cases use and the others do not, as far as there is one: the largest product
    of the two shares (Ochiai, 1957)."""
    with_failure, used = Counter[str](), Counter[str]()
    for text, note in cases.items():
        for kernel in set(note.get("kernels", ())):
            used[stem_of(kernel)] += 1
            with_failure[stem_of(kernel)] += plain(text) in failed
    return max(sorted(used), key=lambda kernel: with_failure[kernel] ** 2 / used[kernel], default="")


def run_api(options: argparse.Namespace, folder: str, head: dict[str, Any], *flags: str) -> Judged | None:
    """Judges the corpus in a new folder; None after an error, which `assay api` has printed."""
    command = [options.assay, "api", options.corpus, f"--log_dir={folder}", "--quiet=True"]
    framework = head.get("framework", "torch").partition(" ")[0]
    command += [f"--test-lane={options.test_lane or framework}", "--fail-on=none", *flags]
    command += options.pass_on
    if options.reference_lane:
        command.append(f"--reference-lane={options.reference_lane}")
    python = head.get("python", "")
    given = any(each.startswith(f"--{framework}_python") for each in options.pass_on)
    if os.path.exists(python) and not given:
        command.append(f"--{framework}_python={python}")
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return Judged(options.assay, folder) if done.returncode in (0, 1, NOTHING) else None


def text_of(suspect: Suspect, number: int, judged: Judged, steps: int) -> str:
    """What is known of a suspect, for a reader."""
    lines = [f"{number}. {suspect.api}: {suspect.kind}"]
    message = suspect.finding.get("message", "")
    if message:
        lines.append(f"   {message}")
    lines.append(f"   {len(suspect.failed)} of its {len(suspect.cases)} cases fail; {suspect.calls} calls")
    if steps:
        share = min(1.0, suspect.steps / steps)
        lines[-1] += f", in {share:.0%} of {steps} steps, first in step {suspect.first}"
    for (frames, module), calls in suspect.places.most_common(MOST_PLACES):
        lines.append(f"   {frames}{f' ({module})' if module else ''}: {calls} calls")
    if suspect.follows:
        lines.append(f"   it calls {suspect.follows}, which fails too")
    if suspect.kernels:
        lines.append(f"   kernels: {', '.join(sorted(suspect.kernels))}")
    if suspect.finding:
        finding = suspect.finding
        lines.append(f"   {finding['case']}")
        lines.append(f"   script: assay repro {judged.folder} {finding['id']}")
        lines.append(f"   smaller: assay shrink {judged.folder} {finding['id']}")
    return "\n".join(lines)


def blame(options: argparse.Namespace) -> int:
    """Judges, ranks and prints. Returns the exit code."""
    try:
        with open(options.corpus, encoding="utf-8") as text:
            head, cases = corpus.read(text)
    except (OSError, UnicodeDecodeError, corpus.Damaged) as error:
        print(f"error: {options.corpus}: {error}", file=sys.stderr)
        return USAGE
    folder = options.log_dir or _new_folder(options.corpus)
    judged = run_api(options, folder, head, f"--values={options.values}")
    if judged is None:
        return USAGE
    kind = "wrong beyond the error bar"
    suspects = suspects_of(cases, judged.failed, judged.report["findings"], kind)
    if not suspects:
        again = run_api(options, f"{folder}.repeated", head, "--accuracy_stable=True", "--values=usual")
        if again is not None:
            unstable = {text: outcome for text, outcome in again.failed.items() if outcome == "unstable"}
            suspects = suspects_of(cases, unstable, again.report["findings"], "not reproducible")
            judged = again if suspects else judged
    old = [each for each in suspects if each.finding.get("state") == "known"]
    suspects = [each for each in suspects if each not in old]
    kernel = _kernel_of(cases, judged.failed)
    if head.get("first_nan") and not options.json:
        print(first_nan(head["first_nan"], cases))
    if options.json:
        print(json.dumps(_as_json(suspects, judged, head, kernel), indent=1))
    elif suspects:
        for number, suspect in enumerate(suspects[:MOST_SHOWN], start=1):
            print(text_of(suspect, number, judged, head.get("steps", 0)))
        if kernel and len(suspects) > 1:
            print(f"the kernel that the failures share most: {kernel}")
        if len(suspects) > MOST_SHOWN:
            print(f"{len(suspects) - MOST_SHOWN} more: assay report {judged.folder}")
    else:
        print(_nobody(cases, judged, head))
    if old and not options.json:
        names = ", ".join(each.api for each in old)
        print(f"known faults of this build that every user has: {names}: assay report {judged.folder}")
    return 1 if suspects else 0 if judged.verdicts else NOTHING


def first_nan(nan: dict[str, Any], cases: dict[str, dict[str, Any]]) -> str:
    """Which call of the program made the first NaN."""
    places = cases.get(nan["case"], {}).get("at", [])
    place = (
        f" at {' < '.join(places[0][0])}" + (f" ({places[0][1]})" if places[0][1] else "") if places else ""
    )
    how = "got it as an input: a backward pass or an uncaptured call made it" if nan["input"] else "made it"
    return f"the first NaN: step {nan['step']}: {nan['case']}{place} {how}"


def _new_folder(file: str) -> str:
    """A folder beside the corpus that does not exist yet."""
    names = (f"{file}.blame{number or ''}" for number in itertools.count())
    return next(name for name in names if not os.path.exists(name))


def _nobody(cases: dict[str, Any], judged: Judged, head: dict[str, Any]) -> str:
    lines = [
        f"no operator is to blame: {judged.verdicts} of {len(cases)} distinct calls have a verdict, and agree"
    ]
    left_out = sum(head.get("left_out", {}).values())
    if left_out:
        lines.append(f"  {left_out} calls of the program could not be written as cases; {options_name(head)}")
    lines.append(
        "  what is left: values that the regimes do not have, state, an interaction of calls, the data"
    )
    return "\n".join(lines)


def options_name(head: dict[str, Any]) -> str:
    """The reasons of what was left out, the most frequent first."""
    most = sorted(head["left_out"].items(), key=lambda each: -each[1])[:MOST_PLACES]
    return "; ".join(f"{number} × {reason}" for reason, number in most)


def _as_json(suspects: list[Suspect], judged: Judged, head: dict[str, Any], kernel: str) -> dict[str, Any]:
    return {
        "version": 1,
        "first_nan": head.get("first_nan"),
        "kernel": kernel if suspects else "",
        "verdicts": judged.verdicts,
        "outcomes": {key: value for key, value in judged.report["outcomes"].items() if value},
        "steps": head.get("steps", 0),
        "suspects": [
            {
                "api": each.api,
                "kind": each.kind,
                "cases": len(each.cases),
                "failed": len(each.failed),
                "calls": each.calls,
                "steps": each.steps,
                "first": each.first,
                "follows": each.follows,
                "kernels": sorted(each.kernels),
                "at": [[frames, module, calls] for (frames, module), calls in each.places.most_common()],
                "message": each.finding.get("message", ""),
                "case": each.finding.get("case", each.failed[0]),
                "finding": each.finding.get("number", 0),
                "id": each.finding.get("id", ""),
            }
            for each in suspects
        ],
        "folder": judged.folder,
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line that `assay blame` passes on."""
    parser = argparse.ArgumentParser(prog="assay blame")
    parser.add_argument("--assay", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--test-lane", default="")
    parser.add_argument("--reference-lane", default="")
    parser.add_argument("--values", default=VALUES)
    parser.add_argument("--log_dir", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pass-on", action="append", default=[])
    return blame(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
