"""Lanes that are forked ahead, for devices on which a lane needs long to begin.

On a GPU a lane has its first result after most of a second: it makes a context, loads the framework's
libraries and each kernel that it calls. A spare has that behind it, and waits in its process to be given a
slot's socket, arena and log; until then it runs no case. Where none is ready, a lane is forked as everywhere.
"""

import os
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

HOW_MANY = "ASSAY_SPARES"  # of each kind, as the run's budget of memory allows
OWN_MPS = "ASSAY_OWN_MPS"  # set where the run has started an MPS for its lanes
FIRST_AFTER = 2.0  # seconds from the first request on, in which the run's lanes make their own contexts
AFTER = 0.2  # seconds without a request
MOST_FAILURES = 3  # one after another; then there is no memory for spares of this kind
READY, TAKE = b"ready", b"take"
FAULT_EXIT = 86  # kDeviceFaultExit of src/device/device.h


class Kind(NamedTuple):
    """What tells spares apart, beside the server that forks them."""

    device: str
    apart: bool  # outside the run's MPS


def kind_of(device: str, apart: bool) -> Kind:
    return Kind(device, apart and OWN_MPS in os.environ)


class Spare:
    """A forked process, and our end of its socket."""

    def __init__(self, kind: Kind, pid: int, end: socket.socket) -> None:
        self.kind = kind
        self.pid = pid
        self.end = end
        self.ready = False


class Spares:
    """The spares of a server. `fork(kind, ours, theirs)` gives the process that then calls
    wait_to_be_taken(theirs)."""

    def __init__(self, fork: Callable[[Kind, socket.socket, socket.socket], int]) -> None:
        self.fork = fork
        self.most = int(os.environ.get(HOW_MANY, "0"))
        self.kinds: dict[Kind, float] = {}  # that were asked for, and when spares of them may be made
        self.failures: dict[Kind, int] = {}
        self.waiting: dict[int, Spare] = {}  # by their process

    def take(self, kind: Kind, fds: list[int]) -> int | None:
        """The process that has got these descriptors; None where no spare is ready."""
        self._wanted(kind)
        for spare in [spare for spare in self.waiting.values() if spare.ready and spare.kind == kind]:
            del self.waiting[spare.pid]
            with spare.end:
                try:
                    socket.send_fds(spare.end, [TAKE], fds)
                except OSError:
                    continue  # it has just died, which shows when it is reaped
            return spare.pid
        return None

    def _wanted(self, kind: Kind) -> None:
        if kind.device == "cpu" or not self.most:
            return
        now = time.monotonic()
        # What fails is tried again by itself, and apart from an MPS where there is one.
        for wanted in {kind, kind_of(kind.device, True)}:
            self.kinds[wanted] = now + (AFTER if wanted in self.kinds else FIRST_AFTER)

    def missing(self) -> bool:
        return any(self._lacks(kind) for kind in self.kinds)

    def _lacks(self, kind: Kind) -> bool:
        # A second attempt takes one for each of its lanes.
        most = self.most if kind == kind_of(kind.device, True) else 1
        there = sum(spare.kind == kind for spare in self.waiting.values())
        return there < most and self.failures.get(kind, 0) < MOST_FAILURES

    def make(self) -> Spare | None:
        """Forks one that is missing; None when there is none, or slots are asking for lanes."""
        now = time.monotonic()
        for kind, at in self.kinds.items():
            if now < at or not self._lacks(kind):
                continue
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                try:
                    pid = self.fork(kind, ours, theirs)
                except OSError:
                    ours.close()
                    self.failures[kind] = MOST_FAILURES
                    return None
            spare = self.waiting[pid] = Spare(kind, pid, ours)
            return spare
        return None

    def heard(self, end: socket.socket) -> bool:
        """Whether a spare has said that it is ready; otherwise it has ended."""
        spare = next(spare for spare in self.waiting.values() if spare.end is end)
        try:
            spare.ready = end.recv(len(READY)) == READY
        except OSError:
            spare.ready = False
        if spare.ready:
            self.failures[spare.kind] = 0
        return spare.ready

    def ended(self, pid: int) -> bool:
        """Whether this process, which has ended, was a spare that nobody has taken."""
        spare = self.waiting.pop(pid, None)
        if spare is None:
            return False
        spare.end.close()
        self.failures[spare.kind] = self.failures.get(spare.kind, 0) + 1
        return True

    def poisoned(self) -> list[int]:
        """The processes that share an MPS with one whose fault has just ended all of its clients."""
        if OWN_MPS not in os.environ:
            return []
        return [pid for pid, spare in self.waiting.items() if not spare.kind.apart]


def wait_to_be_taken(end: socket.socket) -> list[int] | None:
    """In a spare, once all is behind it: the socket, arena and log it is given. None: it is not wanted."""
    with end:
        end.send(READY)
        data, fds, _, _ = socket.recv_fds(end, len(TAKE), 3)
    return fds if data == TAKE and len(fds) == 3 else None
