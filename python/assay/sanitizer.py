"""Reads the reports of NVIDIA's compute-sanitizer, in a lane that runs under it.

The sanitizer appends complete reports to one file, before the call that waits for a kernel returns. Only one
lane at a time runs under it (src/device/compute_sanitizer.h). So the text that is appended while a case runs
belongs to the case.
"""

import os
import time
from typing import Any

PREFIX = "========= "
MOST_BYTES = 1 << 16  # bytes of reports that are read: a kernel can have a report for each thread
END = PREFIX.encode() + b"\n"  # the last line of a report
PATIENCE = 0.2  # seconds to wait for the end of the last report
# Starts of lines that are not about a kernel.
NO_REPORT = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Program hit", "Target application")


class Sanitizer:
    """Reads the reports of one lane's cases. Finds none in a lane that does not run under the sanitizer."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.log = os.environ.get("ASSAY_SANITIZER_LOG", "")
        self.read = 0  # size of the log when the current case started

    def begin(self) -> None:
        """Marks the start of a case."""
        if self.log:
            self.read = self._size()

    def found(self) -> str:
        """The reports since begin() on one line; empty if there are none. Waits for the device."""
        if not self.log:
            return ""
        self.native.wait()
        text = self._new_text()
        return in_one_line(text) if text else ""

    def _size(self) -> int:
        try:
            return os.path.getsize(self.log)
        except OSError:
            return 0  # the sanitizer creates the file when the first process attaches

    def _new_text(self) -> str:
        grown = self._size() - self.read
        if grown <= 0:
            return ""
        with open(self.log, "rb") as file:
            give_up = time.monotonic() + PATIENCE
            while True:
                file.seek(self.read)
                data = file.read(MOST_BYTES)
                if data.endswith(END) or len(data) == MOST_BYTES or time.monotonic() > give_up:
                    return data.decode(errors="replace")
                time.sleep(0.001)


def in_one_line(text: str) -> str:
    """The first report on one line, with the number of further reports; empty if the text has none."""
    reports: list[list[str]] = []
    for line in text.splitlines():
        words = line.removeprefix(PREFIX.rstrip()).removeprefix(" ")
        if words.startswith(" "):
            if reports and reports[-1]:
                reports[-1].append(words.strip())
        elif words.startswith(NO_REPORT):
            reports.append([])  # so that the indented lines below belong to no report
        elif words.strip():
            reports.append([words.strip()])
    reports = [report for report in reports if report]
    if not reports:
        return ""
    more = f" (and {len(reports) - 1} more reports)" if len(reports) > 1 else ""
    return "; ".join(reports[0]) + more
