"""`assay blame`: replays captured calls on a lane against float64, and ranks the operators that are wrong.

`assay api` judges; this module reads its report and puts it together with what the capture knows of each
call: how often, where in the program, and by which kernels.
"""

import argparse
import csv
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from assay.capture import corpus, deep

USAGE, TROUBLE, NOTHING = 2, 3, 4  # src/cli/verb.h
FAILED = "mismatch,crash,test_error,timeout,sanitizer,unstable"  # of the operator; oom is of the machine
WRONG, UNSTABLE = "wrong beyond the error bar", "not reproducible"
# An error is larger than the other lane's from this factor on, if it has this number of ulps.
LARGER_BY, LEAST_ULPS = 8, 4
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "complex64": 23, "float64": 52, "complex128": 52}
# Values that training has. NaN, infinities and numbers near overflow come after a fault, not before it.
VALUES = "usual,exact,layout,constant"
MOST_PLACES = 3
MOST_SHOWN = 5
MANY = 1 << 20
# Functions that make or fill tensors: their results show what they were told.
BYSTANDERS = re.compile(
    r"(new_)?(zeros|ones|full|empty|eye|arange|range|linspace|logspace|rand|randn|randint|randperm|normal|tensor"
    r"|scalar_tensor|as_tensor|empty_strided|uniform|fill|zero)(_like)?"
)


class Judged:
    """A run of `assay api`: its report, and the cases that failed."""

    def __init__(self, assay: str, file: str, folder: str) -> None:
        self.assay, self.file, self.folder = assay, file, folder
        self.report = json.loads(
            _output(assay, "report", folder, "--json", "--every-failure", "--against=known", "--fail-on=none")
        )
        self.failed = self.with_outcome(FAILED)
        judged = ("pass", *FAILED.split(","))
        self.verdicts = sum(self.report["outcomes"].get(outcome, 0) for outcome in judged)

    def with_outcome(self, outcomes: str) -> set[str]:
        """The cases with these outcomes."""
        command = "corpus", "filter", self.file, f"--outcome={outcomes}", f"--run={self.folder}"
        return set(corpus.read(_output(self.assay, *command).splitlines())[1])

    def errors(self) -> dict[str, list[tuple[float, float]]]:
        """The largest error of each tensor of each case: absolute, and relative in ulps of 1."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        with open(os.path.join(self.folder, "tol.csv"), encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                largest = float(row["max_abs_diff"]), float(row["max_rel_diff"])
                found[row["config"]].append((largest[0], largest[1] * 2 ** DIGITS.get(row["dtype"], 0)))
        return found


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def stem_of(api: str) -> str:
    """The operator's bare name: that of a method, of a function and of an overload are equal."""
    parts = api.split(".")
    if api.startswith("torch.ops.") and len(parts) > 3:
        parts = parts[:4]
    return parts[-1].strip("_")


@dataclass
class Suspect:
    """An API that failed, with what speaks for it."""

    api: str
    kind: str
    cases: int = 0
    calls: int = 0
    steps: int = 0
    first: int = 0
    follows: str = ""  # the operator whose fault explains this one
    kernels: set[str] = field(default_factory=set)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    failing: set[str] = field(default_factory=set)
    finding: dict[str, Any] = field(default_factory=dict)

    @property
    def case(self) -> str:
        """A case that fails."""
        return min(self.failing, key=lambda text: (len(text), text), default="")

    @property
    def failed(self) -> int:
        """How many cases fail."""
        return len(self.failing)

    def score(self, kernel: str) -> tuple[Any, ...]:
        """Sorts the most likely culprit first."""
        shares = any(stem_of(each) == kernel for each in self.kernels)
        most_direct = len(self.kernels) if shares else MANY
        named_so = kernel == stem_of(self.api)
        share = self.failed / self.cases
        return (bool(self.follows), not named_so, most_direct, -share, -self.calls, self.api)

    def as_json(self) -> dict[str, Any]:
        """The fields, with those of the finding."""
        finding = self.finding
        at = [[frames, module, calls] for (frames, module), calls in self.places.most_common()]
        shown = {"kernels": sorted(self.kernels), "at": at, "message": finding.get("message", "")}
        shown |= {"case": finding.get("case", self.case), "finding": finding.get("number", 0)}
        left_out = ("places", "finding", "failing")
        kept = {key: each for key, each in vars(self).items() if key not in left_out}
        kept["failed"] = self.failed
        return kept | shown | {"id": finding.get("id", "")}


def suspects_of(
    cases: dict[str, dict[str, Any]], failed: Collection[str], findings: list[dict[str, Any]], kind: str
) -> list[Suspect]:
    """The APIs that failed, the most likely culprit first."""
    found: dict[str, Suspect] = {}
    inside: dict[str, set[str]] = defaultdict(set)
    for text, note in cases.items():
        api = text.partition("(")[0]
        if BYSTANDERS.fullmatch(stem_of(api)):
            continue
        suspect = found.setdefault(api, Suspect(api, kind))
        suspect.cases += 1
        if text not in failed:
            continue
        suspect.failing.add(text)
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
        suspect.follows = min(inside.get(suspect.api, set()) - {suspect.api}, default="")
        suspect.finding = next((each for each in findings if each["api"] == suspect.api), {})
    kernel = _kernel_of(cases, failed)
    return sorted(guilty, key=lambda suspect: suspect.score(kernel))


def _kernel_of(cases: dict[str, dict[str, Any]], failed: Collection[str]) -> str:
    """The kernel that the failed cases use and the others do not, as far as there is one: the largest product
    of the two shares (Ochiai, 1957)."""
    with_failure, used = Counter[str](), Counter[str]()
    for text, note in cases.items():
        for kernel in set(note.get("kernels", ())):
            used[stem_of(kernel)] += 1
            with_failure[stem_of(kernel)] += text in failed
    return max(sorted(used), key=lambda kernel: with_failure[kernel] ** 2 / used[kernel], default="")


def text_of(suspect: Suspect, number: int, judged: Judged, steps: int) -> str:
    """What is known of a suspect, for a reader."""
    finding = suspect.finding
    lines = [f"{number}. {suspect.api}: {suspect.kind}"]
    if finding.get("message"):
        lines.append(f"   {finding['message']}")
    lines.append(f"   {suspect.failed} of its {suspect.cases} cases fail; {suspect.calls} calls")
    if steps:
        share = min(1.0, suspect.steps / steps)
        lines[-1] += f", in {share:.0%} of {steps} steps, first in step {suspect.first}"
    for (frames, module), calls in suspect.places.most_common(MOST_PLACES):
        lines.append(f"   {frames}{f' ({module})' if module else ''}: {calls} calls")
    if suspect.follows:
        lines.append(f"   it calls {suspect.follows}, which fails too")
    if suspect.kernels:
        lines.append(f"   kernels: {', '.join(sorted(suspect.kernels))}")
    lines.append(f"   {finding.get('case', suspect.case)}")
    if finding:
        lines.append(f"   script: assay repro {judged.folder} {finding['id']}")
        lines.append(f"   smaller: assay shrink {judged.folder} {finding['id']}")
    return "\n".join(lines)


class Search:
    """The looks at one capture, one after the other until a suspect is found."""

    def __init__(self, options: argparse.Namespace, head: dict[str, Any], notes: dict[str, Any]) -> None:
        self.options = options
        self.head = head
        self.notes = notes
        self.folder = options.log_dir or _new_folder(options.corpus)
        self.framework = head.get("framework", "torch").partition(" ")[0]
        merged = _output(options.assay, "corpus", "merge", options.corpus)
        self.cases = corpus.read(merged.splitlines())[1]  # by canonical texts
        values = options.values or VALUES + ",observed" * any("values" in each for each in notes.values())
        self.flags = [f"--values={values}", *(["--test_tol=True"] if options.reference_lane else [])]
        self.known: list[Suspect] = []  # faults that every user of the build has

    def run(self, lane: str, name: str, *flags: str, file: str = "") -> Judged | None:
        """Judges a corpus in a new folder; None after an error, which `assay api` has printed."""
        options, folder = self.options, self.folder + name
        file = file or options.corpus
        command = [options.assay, "api", file, f"--log_dir={folder}", "--quiet=True", "--fail-on=none"]
        command += [f"--test-lane={lane or self.framework}", *flags, *options.pass_on]
        if options.reference_lane:
            command.append(f"--reference-lane={options.reference_lane}")
        python = self.head.get("python", "")
        given = any(each.startswith(f"--{self.framework}_python") for each in options.pass_on)
        if os.path.exists(python) and not given:
            command.append(f"--{self.framework}_python={python}")
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return Judged(options.assay, file, folder) if done.returncode in (0, 1, NOTHING) else None

    def suspects(self, judged: Judged) -> tuple[list[Suspect], Judged]:
        """The suspects of the first look that finds one, and the run in which it did."""
        found = self.wrong(judged)
        if not found and self.options.reference_lane:
            found = self.larger(judged)
        if not found and (again := self.under_autocast()):
            found = suspects_of(self.cases, again.failed, again.report["findings"], f"{WRONG} under autocast")
            judged = again if found else judged
        if not found and (
            again := self.run(self.options.test_lane, ".repeated", "--accuracy_stable=True", "--values=usual")
        ):
            unstable = again.with_outcome("unstable")
            found = suspects_of(self.cases, unstable, again.report["findings"], UNSTABLE)
            judged = again if found else judged
        return found, judged

    def wrong(self, judged: Judged) -> list[Suspect]:
        """The APIs that failed, without the faults that assay knows of the build and that a lane of the plain
        framework shows, too."""
        found = suspects_of(self.cases, judged.failed, judged.report["findings"], WRONG)
        listed = [each for each in found if each.finding.get("state") == "known"]
        if listed and self.options.test_lane:
            names = " or ".join(sorted({each.api for each in listed}))
            plain = self.run("", ".plain", *self.flags, f"--filter={names}")
            failed = plain.failed if plain else set()
            listed = [each for each in listed if each.failing <= failed]
        self.known = listed
        return [each for each in found if each not in listed]

    def larger(self, judged: Judged) -> list[Suspect]:
        """The APIs with an error that is larger than in the other lane."""
        lane = self.options.reference_lane
        other = self.run(lane, ".other", *self.flags)
        others = other.errors() if other else {}
        larger = {
            text
            for text, errors in judged.errors().items()
            for (error, ulps), (known, _) in zip(errors, others.get(text, ()), strict=False)
            if error > LARGER_BY * known and ulps > LEAST_ULPS
        }
        return suspects_of(self.cases, larger, [], f"larger error than in {lane}")

    def under_autocast(self) -> Judged | None:
        """The calls that the program made under autocast, judged under autocast. None if there are none."""
        mixed = [text for text, note in self.notes.items() if "autocast" in note.get("changed", {})]
        if not mixed:
            return None
        file = f"{self.folder}.autocast.txt"
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(f"{text}\n" for text in mixed)
        return self.run(self.options.test_lane, ".autocast", "--test_amp=True", "--values=usual", file=file)


def blame(options: argparse.Namespace) -> int:
    """Judges, ranks and prints. Returns the exit code."""
    try:
        with open(options.corpus, encoding="utf-8") as text:
            head, written = corpus.read(text)
    except (OSError, UnicodeDecodeError, corpus.Damaged) as error:
        print(f"error: {options.corpus}: {error}", file=sys.stderr)
        return USAGE
    search = Search(options, head, written)
    first = search.run(options.test_lane, "", *search.flags)
    if first is None:
        return USAGE
    suspects, judged = search.suspects(first)
    kernel = _kernel_of(search.cases, judged.failed) if suspects else ""
    if options.json:
        print(json.dumps(_as_json(suspects, judged, head, kernel), indent=1))
        return 1 if suspects else 0 if judged.verdicts else NOTHING
    if head.get("first_nan"):
        print(first_nan(head["first_nan"], written))
    for number, suspect in enumerate(suspects[:MOST_SHOWN], start=1):
        print(text_of(suspect, number, judged, head.get("steps", 0)))
    if kernel and len(suspects) > 1:
        print(f"the kernel that the failures share most: {kernel}")
    if len(suspects) > MOST_SHOWN:
        print(f"{len(suspects) - MOST_SHOWN} more: assay report {judged.folder}")
    if not suspects:
        print(_nobody(search.cases, judged, head))
    if search.known:
        names = ", ".join(each.api for each in search.known)
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
        "  what is left: values that the regimes do not have, state, an interaction of calls, the data\n"
        "  next: assay capture --deep FILE -- … in two builds, then assay blame --deep FILE OTHER"
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
        "kernel": kernel,
        "verdicts": judged.verdicts,
        "outcomes": {key: value for key, value in judged.report["outcomes"].items() if value},
        "steps": head.get("steps", 0),
        "suspects": [each.as_json() for each in suspects],
        "folder": judged.folder,
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line of `assay blame`."""
    parser = argparse.ArgumentParser(prog="assay blame")
    parser.add_argument("--assay", required=True)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--test-lane", default="")
    parser.add_argument("--reference-lane", default="")
    parser.add_argument("--values", default="")
    parser.add_argument("--log_dir", default="")
    parser.add_argument("--json", action="store_true")
    options, options.pass_on = parser.parse_known_args(arguments)  # the rest is for assay api
    if len(options.corpus) != 1 + options.deep:
        print("error: blame takes one corpus, or --deep and the two files of two runs", file=sys.stderr)
        return USAGE
    if options.deep:
        try:
            lines, differ = deep.compared(*options.corpus)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return USAGE
        print("\n".join(lines))
        return int(differ)
    (options.corpus,) = options.corpus
    return blame(options)


if __name__ == "__main__":
    sys.exit(main())
