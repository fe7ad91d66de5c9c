"""The mutation score of a run of `assay mutate`: python -m assay.mutation.score DIR [FILE.md]

Reads DIR/mutants.jsonl. A mutant is a case with one fault, under all value regimes; it is killed if one of
them shows the fault. FILE.md gets the tables, between the two MARKS if it has them.
"""

import datetime
import json
import os
import pathlib
import platform
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from assay.mutation.faults import FAULTS

VERSION = 1
# The fates of a trial. The first that occurs under any value regime is the fate of the mutant.
FATES = ("killed", "survived", "equivalent", "inapplicable", "unjudged")
MARKS = "<!-- assay mutate: begin -->", "<!-- assay mutate: end -->"
BY_DTYPE = ("off_5_percent", "off_0.1_percent", "off_8_ulp")


class Mutant(NamedTuple):
    """A case with one fault, and its fate over all value regimes."""

    case: str
    fault: str
    fate: str
    weak: bool  # a distribution or only a shape is compared
    planted: str
    message: str  # for a survivor: the value regimes

    @property
    def api(self) -> str:
        """The case's API."""
        return self.case.split("(")[0]

    @property
    def dtype(self) -> str:
        """The dtype of the changed leaf."""
        return self.planted.split(" ")[0]


def read(file: pathlib.Path) -> tuple[dict[str, str], list[Mutant]]:
    """The run's properties and its mutants. Exits with a message for another format version."""
    with file.open() as lines:
        head = json.loads(next(lines))
        if head.get("version") != VERSION:
            sys.exit(f"{file}: version {head.get('version')}; this assay reads {VERSION}")
        trials: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            trial = json.loads(line)
            trials[trial["case"], trial["fault"]].append(trial)
    return head["properties"], [one_of(*key, found) for key, found in trials.items()]


def one_of(case: str, fault: str, trials: list[dict[str, Any]]) -> Mutant:
    """The mutant of these trials: the first of FATES that occurs decides."""
    fate = next(fate for fate in FATES if any(trial["fate"] == fate for trial in trials))
    of_fate = [trial for trial in trials if trial["fate"] == fate]
    values = ", ".join(trial["values"] for trial in of_fate)
    message = values if fate == "survived" else of_fate[0].get("message", "")
    weak = any(trial.get("weak", False) for trial in trials)
    return Mutant(case, fault, fate, weak, of_fate[0].get("planted", ""), message)


class Row(Counter[str]):
    """The fates of a group of mutants."""

    @property
    def made(self) -> int:
        """The number of killed and surviving mutants."""
        return self["killed"] + self["survived"]

    @property
    def share(self) -> float | None:
        """The score: the share of killed mutants; None without mutants."""
        return self["killed"] / self.made if self.made else None


def rows(mutants: Iterable[Mutant], key: Callable[[Mutant], Any]) -> dict[Any, Row]:
    """The mutants grouped by `key`."""
    found: dict[Any, Row] = defaultdict(Row)
    for mutant in mutants:
        found[key(mutant)][mutant.fate] += 1
    return found


def families() -> dict[str, str]:
    """The family file of each API."""
    os.environ.pop("ASSAY_FRAMEWORK", None)  # the tables need no framework for that
    from assay.registry import load_all

    return {name: entry.family for name, entry in load_all().items()}


def percent(share: float | None) -> str:
    """A share as a percentage; empty for None."""
    return "" if share is None else f"{100 * share:.1f}%"


def table(head: str, lines: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; `head` has the titles, separated by |."""
    titles = head.split("|")
    rule = ["---" if place == 0 else "---:" for place in range(len(titles))]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (titles, rule, *lines))


def by_fault(mutants: list[Mutant]) -> str:
    """The table of all faults."""
    found = rows(mutants, lambda mutant: mutant.fault)
    lines = []
    for name, fault in FAULTS.items():
        if (row := found.get(name)) is None:
            continue
        others = (row[fate] for fate in FATES[2:])
        figures = (row["killed"], row["survived"], percent(row.share), percent(fault.aim))
        lines.append((f"`{name}`: {fault.what}", row.made, *figures, *others))
    return table("fault|mutants|killed|survived|score|aim|equivalent|inapplicable|unjudged", lines)


def by_dtype(mutants: list[Mutant]) -> str:
    """The table of relative faults by dtype."""
    made = [mutant for mutant in mutants if mutant.fault in BY_DTYPE and mutant.fate in FATES[:2]]
    found = rows(made, lambda mutant: (mutant.fault, mutant.dtype))
    dtypes = sorted({dtype for _, dtype in found})
    return table(
        "|".join(("fault", *dtypes)),
        (
            (f"`{fault}`", *(cell(found.get((fault, dtype))) for dtype in dtypes))
            for fault in BY_DTYPE
        ),
    )  # fmt: skip


def cell(row: Row | None) -> str:
    """ "killed/made" of a row; empty without mutants."""
    return "" if row is None or not row.made else f"{row['killed']}/{row.made}"


def by_family(mutants: list[Mutant]) -> str:
    """The table of faults by family."""
    of = families()
    found = rows(mutants, lambda mutant: (of.get(mutant.api, "?"), mutant.fault))
    used = [fault for fault in FAULTS if any(key[1] == fault for key in found)]
    together = rows(mutants, lambda mutant: of.get(mutant.api, "?"))
    return table(
        "|".join(("family", *used, "all")),
        (
            (family, *(cell(found.get((family, fault))) for fault in used), cell(together[family]))
            for family in sorted(together)
        ),
    )


def survivors(mutants: list[Mutant]) -> str:
    """A list of the APIs with surviving mutants, by fault, with their number."""
    found = Counter((mutant.fault, mutant.api) for mutant in mutants if mutant.fate == "survived")
    lines: dict[str, list[str]] = defaultdict(list)
    for (fault, api), count in sorted(found.items()):
        lines[fault].append(f"{api}{f' ({count})' if count > 1 else ''}")
    return "\n".join(f"- `{fault}`: {', '.join(lines[fault])}" for fault in FAULTS if fault in lines)


def heading(properties: dict[str, str], mutants: list[Mutant]) -> str:
    """The date, machine, versions and size of the run."""
    versions = ", ".join(f"{name} {properties[name]}" for name in ("paddle", "torch") if name in properties)
    made = sum(mutant.fate in FATES[:2] for mutant in mutants)
    apis = len({mutant.api for mutant in mutants})
    known = len(families())
    return (
        f"{datetime.date.today()}, {os.cpu_count()} cores ({platform.machine()}), assay "
        f"{properties.get('version.assay')}, {versions}; seed {properties.get('seed')}, one in "
        f"{properties.get('mutants_share')}; value regimes: {properties.get('values') or 'all'}.\n"
        f"{made} mutants in {len({mutant.case for mutant in mutants})} cases of {apis} APIs "
        f"(the tables have {known})."
    )


def write(file: pathlib.Path, text: str) -> None:
    """Writes `text` to the file, between the MARKS if the file has them."""
    old = file.read_text() if file.exists() else ""
    if all(mark in old for mark in MARKS):
        before, rest = old.split(MARKS[0])
        text = f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"
    file.write_text(text)


def main() -> None:
    """Prints the tables of the run that the command line names, and writes the longer tables to a file."""
    properties, mutants = read(pathlib.Path(sys.argv[1]) / "mutants.jsonl")
    head = heading(properties, mutants)
    full = [mutant for mutant in mutants if not mutant.weak]
    weak = [mutant for mutant in mutants if mutant.weak]
    tables = [head, by_fault(full), "By dtype of what was changed:", by_dtype(full)]
    tables += ["Where a distribution or only a shape is compared:", by_fault(weak)] if weak else []
    print("\n\n".join(tables))
    if len(sys.argv) > 2:
        more = ["By family:", by_family(mutants), "Survivors:", survivors(full)]
        more += ["Survivors among draws and shapes:", survivors(weak)] if weak else []
        write(pathlib.Path(sys.argv[2]), "\n\n".join([*tables, *more]) + "\n")


if __name__ == "__main__":
    main()
