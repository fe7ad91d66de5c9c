"""What NVIDIA's compute-sanitizer says of a case, in a lane that runs under it.

It writes its reports into one file, whole, before the call that waits for a kernel returns. One lane at a
time works under it (src/device/compute_sanitizer.h), so what the file grows by while a case runs is the
case's.
"""

import os
import time
from typing import Any

PREFIX = "========= "
MOST_BYTES = 1 << 16  # of reports that are read; a kernel may have one for each of its threads
END = PREFIX.encode() + b"\n"  # of a report
PATIENCE = 0.2  # seconds for the end of the last report
# First words of lines that are no report of a kernel.
NO_REPORT = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Program hit", "Target application")


class Sanitizer:
    """Reads the reports of one lane's cases. Where the lane is not under it there are none."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.log = os.environ.get("ASSAY_SANITIZER_LOG", "")
        self.read = 0  # of the log, up to the case at hand

    def begin(self) -> None:
        if self.log:
            self.read = self._size()

    def found(self) -> str:
        """What it says of the case that has been run since begin(), in one line; empty: nothing."""
        if not self.log:
            return ""
        self.native.wait()
        text = self._new_text()
        return in_one_line(text) if text else ""

    def _size(self) -> int:
        try:
            return os.path.getsize(self.log)
        except OSError:
            return 0  # it writes its first line when a process comes to it

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
    """The first report, and how many there are; empty where the text has none."""
    reports: list[list[str]] = []
    for line in text.splitlines():
        said = line.removeprefix(PREFIX.rstrip()).removeprefix(" ")
        if said.startswith(" "):
            if reports and reports[-1]:
                reports[-1].append(said.strip())
        elif said.startswith(NO_REPORT):
            reports.append([])  # what is indented below it belongs to it
        elif said.strip():
            reports.append([said.strip()])
    reports = [report for report in reports if report]
    if not reports:
        return ""
    more = f" (and {len(reports) - 1} more reports)" if len(reports) > 1 else ""
    return "; ".join(reports[0]) + more
