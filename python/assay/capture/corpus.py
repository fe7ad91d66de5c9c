"""Files of captured calls: corpora whose comments say how often and where the program made each call.

    # assay capture 1 {"framework": "torch 2.13.0", "command": ["python", "train.py"], …}
    torch.nn.functional.relu(Tensor([8, 16], "float32"))
    #: {"calls": 40, "steps": 20, "at": [[["model.py:12", "train.py:30"], "encoder.0", 40]], …}

A process writes a part: the same cases, whose comments may come later and again (`#= `), as may what is known
of the process (`#! `). `merged` makes the file.
"""

import glob
import json
import os
import site
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

VERSION = 1
HEAD = f"# assay capture {VERSION}"
NOTE = "#:"  # after a case of a merged file
ONE, WHOLE = "#=", "#!"  # of a part: a case by its number, and the process
PART = ".part"
# Frames of these files are never the place of a call.
OWN_FILES = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ROOTS = sorted(
    {
        os.path.abspath(root) + os.sep
        for root in [os.getcwd(), *site.getsitepackages(), *sysconfig.get_paths().values()]
    },
    key=len,
    reverse=True,
)


class Damaged(Exception):
    """A file that is no capture, or one of a newer assay."""


def short_name(file: str) -> str:
    """The file from the folder of the program or of the installed packages on."""
    file = os.path.abspath(file)
    return next((file[len(root) :] for root in _ROOTS if file.startswith(root)), file)


def read_part(lines: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The head of a part, and what it says of each case by the case's text. Ends at the first line that a
    kill has cut."""
    head: dict[str, Any] = {}
    texts: list[str] = []
    notes: list[dict[str, Any]] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if not line.endswith("\n"):
            break
        try:
            if line.startswith(HEAD):
                head = json.loads(line[len(HEAD) :])
            elif word == WHOLE:
                head |= json.loads(rest)
            elif word == ONE:
                number, note = json.loads(rest)
                notes[number] = note
            elif not line.startswith("#"):
                texts.append(line.strip())
                notes.append({"calls": 1, "steps": 1, "at": []})
        except (ValueError, IndexError):
            break
    if nan := head.get("first_nan"):
        nan["case"] = texts[nan["case"]]
    return head, dict(zip(texts, notes, strict=True))


def merged(parts: list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]) -> Iterator[str]:
    """The lines of one file of several parts. The order of the parts does not matter."""
    parts = sorted(parts, key=lambda part: (part[0].get("rank", 0), -len(part[1]), list(part[1])))
    heads = [head for head, _ in parts]
    left_out, missed = Counter[str](), Counter[str]()
    for head in heads:
        left_out.update(head.get("left_out", {}))
        missed.update(head.get("missed", {}))
    whole: dict[str, dict[str, Any]] = {}
    for text, note in (each for _, cases in parts for each in cases.items()):
        known = whole.setdefault(text, {"calls": 0, "steps": 0, "ranks": 0, "at": {}})
        for frames, module, calls in note["at"]:
            place = tuple(frames), module
            known["at"][place] = known["at"].get(place, 0) + calls
        known["calls"] += note["calls"]
        known["ranks"] += 1
        known["steps"] = max(known["steps"], note["steps"])
        for key, value in note.items():
            known.setdefault(key, value)
    nans = [head["first_nan"] for head in heads if "first_nan" in head]
    head = {name: heads[0].get(name, "") if heads else "" for name in ("framework", "command", "python")}
    head |= {
        "ranks": len({head.get("rank", 0) for head in heads}),
        "processes": len(parts),
        "steps": max((head.get("steps", 0) for head in heads), default=0),
        "dispatched": {
            "seen": sum(head.get("seen", 0) for head in heads),
            "missed": dict(sorted(missed.items())),
        },
        "first_nan": min(nans, key=lambda each: each["step"], default=None),
        "left_out": dict(sorted(left_out.items())),
    }
    yield f"{HEAD} {json.dumps(head)}"
    for text, note in whole.items():
        at = [[list(frames), module, calls] for (frames, module), calls in note["at"].items()]
        yield text
        yield f"{NOTE} {json.dumps(note | {'at': at})}"


def read(lines: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The head of a merged file and its notes by the text of the case. Raises Damaged. A corpus without a
    head has cases without notes."""
    head: dict[str, Any] = {}
    cases: dict[str, dict[str, Any]] = {}
    last = ""
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        try:
            if line.startswith("# assay capture "):
                if not line.startswith(HEAD + " "):
                    raise Damaged(f"line {number}: a newer assay has written this capture")
                head = json.loads(line[len(HEAD) :])
            elif line.startswith(NOTE) and last:
                cases[last] = json.loads(line[len(NOTE) :])
            elif line and not line.startswith("#"):
                last = line
                cases.setdefault(last, {})
        except ValueError as error:
            raise Damaged(f"line {number}: {error}") from error
    return head, cases


def parts_of(out: str) -> list[str]:
    """The parts of a capture that goes to `out`."""
    return sorted(glob.glob(glob.escape(out + PART) + "*"))


def merge(out: str) -> tuple[dict[str, Any], int]:
    """Makes one file of the parts and removes them. Returns its head and the number of its cases."""
    files = parts_of(out)
    parts = []
    for file in files:
        with open(file, encoding="utf-8", errors="replace") as text:
            parts.append(read_part(text))
    lines = list(merged(parts))
    temporary = f"{out}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as text:
        text.writelines(f"{line}\n" for line in lines)
    os.replace(temporary, out)
    for file in files:
        os.unlink(file)
    return json.loads(lines[0][len(HEAD) :]), (len(lines) - 1) // 2
