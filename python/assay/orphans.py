"""Processes whose parent has ended: what a case had started and left running.

A server and its lanes are subreapers: a descendant that loses its parent becomes the child of the nearest of
them, and not of init. So a server finds what a lane has left, even a process with a session of its own.
"""

import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt() -> None:
    """Makes this process a subreaper. A forked child is none."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # a C library without prctl: orphans go to init


def children() -> dict[int, dict[int, str]]:
    """The children of every process: their numbers and the names of their commands; "" for a zombie.

    It reads all of /proc, because not every kernel lists children (/proc/PID/task/TID/children).
    A zombie may still be listed with children."""
    found: dict[int, dict[int, str]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            continue  # it has ended
        state, parent = rest.split(maxsplit=2)[:2]
        name = head.partition("(")[2] if state != "Z" else ""
        found.setdefault(int(parent), {})[int(entry)] = name
    return found


def kill_others(known: set[int]) -> list[str]:
    """Kills every child of this process that is not known, with its descendants; returns their commands.

    What was forked meanwhile is missed: call it until it returns nothing."""
    tree = children()
    found = {pid: name for pid, name in tree.get(os.getpid(), {}).items() if pid not in known}
    waiting = list(found)
    while waiting:
        below = tree.get(waiting.pop(), {})
        found |= below
        waiting += below
    living = {pid: name for pid, name in found.items() if name}
    for pid in living:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    return list(living.values())


class Leaks:
    """Names in the lane's log what cases leave running. Their verdicts do not change."""

    LOOK_EVERY = 1.0  # seconds at least between two looks at /proc

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.looked = float("-inf")

    def look(self, api: str) -> None:
        """Prints the children that are new since the last look; `api` is that of the case that just ended."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return  # the usual case: no child at all
        now = time.monotonic()
        if now - self.looked < self.LOOK_EVERY:
            return
        self.looked = now
        mine = children().get(os.getpid(), {})
        if new := [name for pid, name in mine.items() if name and pid not in self.known]:
            print(f"assay: LEAK: {api} left processes running: {', '.join(new)}", file=sys.stderr, flush=True)
        self.known = set(mine)
