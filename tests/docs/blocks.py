"""The shell blocks of a Markdown page.

A block is fenced as ```sh. Two markers are for tests, and a reader does not see them:

    <!-- not run: REASON -->      before a block: CI cannot run it
    <!-- run first:               anywhere: commands that a test runs before the next block,
    COMMANDS                      to make what the page takes for granted
    -->

A block ```text directly below one is what its commands print: each line in this order, `…` for any text.
"""

import re
from typing import NamedTuple

SHELLS = ("sh", "bash", "shell")
# Blocks without a language that start like this are commands that the test would miss.
COMMAND = re.compile(r"\s*(\$ |\./assay |assay |make |pip |git |python3? )")
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
RUN_FIRST = "<!-- run first:"
FENCE = re.compile(r"( *)```(.*)")


class Block(NamedTuple):
    """Commands of a page; ``why_not`` is the reason if they are not run, ``hidden`` marks `run first`."""

    line: int
    text: str
    why_not: str = ""
    hidden: bool = False
    prints: str = ""

    def missing_in(self, printed: str) -> str:
        """The first line of ``prints`` that the commands have not printed; "" if all are there."""
        lines = iter([line.strip() for line in printed.splitlines()])
        for wanted in map(str.strip, self.prints.splitlines()):
            pattern = re.compile(".*".join(map(re.escape, wanted.split("…"))))
            if wanted not in ("", "…") and not any(map(pattern.fullmatch, lines)):
                return wanted
        return ""


def shell_blocks(page: str) -> list[Block]:
    """The blocks in the order of the page. ValueError names the line of a fence that hides commands."""
    blocks = []
    why_not = ""
    below = False  # only blank lines are between a block and this line
    lines = iter(enumerate(page.splitlines(), start=1))
    for number, line in lines:
        if marker := NOT_RUN.fullmatch(line.strip()):
            why_not = marker[1]
        elif line.strip() == RUN_FIRST:
            blocks.append(Block(number + 1, "\n".join(_until("-->", lines)), hidden=True))
        elif fence := FENCE.fullmatch(line):
            indent, language, *options = fence[1], *(fence[2].split() or [""])
            text = "\n".join(each.removeprefix(indent) for each in _until("```", lines))
            if language in SHELLS:
                reason = why_not or ("no-run" if "no-run" in options else "")
                blocks.append(Block(number + 1, text, reason))
            elif language == "text" and below:
                blocks[-1] = blocks[-1]._replace(prints=text)
            elif not language and not why_not and COMMAND.match(text):
                raise ValueError(f"line {number}: this block holds commands; fence it as ```sh")
            why_not = ""
            below = language in SHELLS
        elif line.strip():
            why_not = ""
            below = False
    return blocks


def _until(end, lines):
    """The lines before the one that is ``end``."""
    taken = []
    for _, line in lines:
        if line.strip() == end:
            return taken
        taken.append(line)
    raise ValueError(f"a block has no {end}")
