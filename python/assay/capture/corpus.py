"""Files of captured calls: corpora whose comments say how often and where the program made each call.

    # assay capture 1 {"framework": "torch 2.13.0", "command": ["python", "train.py"], …}
    torch.nn.functional.relu(Tensor([8, 16], "float32"))
    #: {"calls": 40, "steps": 20, "at": [[["model.py:12", "train.py:30"], "encoder.0", 40]], …}

A process writes a part: the same cases, with comments that follow as they become known. `merged` makes the
file.
"""

import glob
import json
import os
import site
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

VERSION = 1
HEAD = f"# assay capture {VERSION}"
NOTE = "#:"  # after a case of a merged file
CASE, WITHIN, PLACE, COUNTS, NAN = "#+", "#<", "#@", "#=", "#!"  # of a part
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
    last = ""
    for line in lines:
        word, _, rest = line.rstrip("\n").partition(" ")
        try:
            if not line.startswith("#"):
                last = line.strip()
            elif line.startswith(HEAD):
                head = json.loads(line[len(HEAD) :])
            elif word == CASE:
                number, known = json.loads(rest)
                if number != len(texts):
                    break
                texts.append(last)
                notes.append({"calls": 1, "steps": 1, "at": [], **known})
            elif word == WITHIN:
                number, function = json.loads(rest)
                notes[number].setdefault("in", []).append(function)
            elif word == NAN:
                number, step, is_input = json.loads(rest)
                head["first_nan"] = {"case": texts[number], "step": step, "input": is_input}
            elif word == PLACE:
                number, _, frames, module = json.loads(rest)
                notes[number]["at"].append([frames, module, 1])
            elif word == COUNTS:
                changed, whole = json.loads(rest)
                head |= whole
                for number, entry in changed.items():
                    note = notes[int(number)]
                    for place, calls in zip(note["at"], entry.pop("at"), strict=False):
                        place[2] = calls
                    note |= entry
        except (ValueError, IndexError):
            break
    return head, dict(zip(texts, notes, strict=True))


def merged(parts: list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]) -> Iterator[str]:
    """The lines of one file of several parts. The order of the parts does not matter."""
    parts = sorted(parts, key=lambda part: (part[0].get("rank", 0), -len(part[1]), list(part[1])))
    whole: dict[str, dict[str, Any]] = {}
    nans = [head["first_nan"] for head, _ in parts if "first_nan" in head]
    left_out = Counter[str]()
    for head, cases in parts:
        left_out.update(head.get("left_out", {}))
        for text, note in cases.items():
            known = whole.setdefault(text, {"calls": 0, "steps": 0, "ranks": 0, "at": []})
            places = {
                (tuple(frames), module): number for number, (frames, module, _) in enumerate(known["at"])
            }
            for frames, module, calls in note["at"]:
                number = places.get((tuple(frames), module))
                if number is None:
                    known["at"].append([frames, module, calls])
                else:
                    known["at"][number][2] += calls
            known["calls"] += note["calls"]
            known["ranks"] += 1
            known["steps"] = max(known["steps"], note["steps"])
            for key, value in note.items():
                known.setdefault(key, value)
    first = parts[0][0] if parts else {}
    head = {
        "framework": first.get("framework", ""),
        "command": first.get("command", []),
        "python": first.get("python", ""),
        "ranks": len({part[0].get("rank", 0) for part in parts}),
        "processes": len(parts),
        "steps": max((part[0].get("steps", 0) for part in parts), default=0),
        "dispatched": _looks(parts),
        "first_nan": min(nans, key=lambda each: each["step"], default=None),
        "left_out": dict(sorted(left_out.items())),
    }
    yield f"{HEAD} {json.dumps(head)}"
    for text, note in whole.items():
        yield text
        yield f"{NOTE} {json.dumps(note)}"


def _looks(parts: list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]) -> dict[str, Any]:
    """Operators that ran in one step inside of captured calls, and those outside by name."""
    looks = [head["look"] for head, _ in parts if "look" in head]
    missed = Counter[str]()
    for look in looks:
        missed.update(look["missed"])
    return {"seen": sum(look["seen"] for look in looks), "missed": dict(sorted(missed.items()))}


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


def options_of_environment() -> dict[str, Any]:
    """What `assay capture` asks of this process."""
    return json.loads(os.environ["ASSAY_CAPTURE"])


def say(text: str) -> None:
    """A line for the user, on standard error."""
    print(f"assay capture: {text}", file=sys.stderr)
