"""Lanes that are forked ahead, for devices on which a lane needs long to begin.

On a GPU a lane has its first result after most of a second: it makes a context, loads the framework's
libraries and each kernel that it calls. A spare has that behind it, and waits in its process to be given a
slot's socket, arena and log; until then it runs no case. Where there is none, a lane is forked as everywhere.
"""

import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

HOW_MANY = "ASSAY_SPARES"  # of each kind, as the run's budget of memory allows
AFTER_A_FAULT = "ASSAY_SPARES_AFTER_A_FAULT"  # likewise: faults come in bursts, and each takes up to four
OWN_MPS = "ASSAY_OWN_MPS"  # set where the run has started an MPS for its lanes
FIRST_AFTER = 3.0  # seconds from the first request on, in which the run's lanes make their own contexts
BEGUN_AFTER = 1.0  # seconds without a request: until then slots begin, one after another
AFTER = 0.2  # likewise, once a GPU has had a fault: others come
MOST_FAILURES = 3  # one after another; then there is no memory for spares of this kind
READY, TAKE = b"ready", b"take"
# That a lane is given: socket, arena, log, shared inputs; the last only where lanes share any.
MOST_FDS = 4
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
    wait_to_be_taken(theirs). `forget(ours)` is told of a socket that is closed before it said anything."""

    def __init__(
        self,
        fork: Callable[[Kind, socket.socket, socket.socket], int],
        forget: Callable[[socket.socket], Any] = lambda _: None,
    ) -> None:
        self.fork = fork
        self.forget = forget
        self.most = int(os.environ.get(HOW_MANY, "0"))
        self.quiet = BEGUN_AFTER
        self.most_after_a_fault = int(os.environ.get(AFTER_A_FAULT, "0"))
        self.kinds: dict[Kind, float] = {}  # that were asked for, and when spares of them may be made
        self.failures: dict[Kind, int] = {}
        self.waiting: dict[int, Spare] = {}  # by their process

    def take(self, kind: Kind, fds: list[int]) -> int | None:
        """The process that has got these descriptors; None where there is no spare.

        One that is not ready yet is nearer to it than one that is forked only: contexts are made one after
        another, for whichever lane."""
        self._wanted(kind)
        of_kind = [spare for spare in self.waiting.values() if spare.kind == kind]
        for spare in sorted(of_kind, key=lambda spare: not spare.ready):
            del self.waiting[spare.pid]
            if not spare.ready:
                self.forget(spare.end)
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
            begun = self.kinds.get(wanted)
            self.kinds[wanted] = now + FIRST_AFTER if begun is None else max(begun, now + self.quiet)

    def fault(self) -> None:
        """A lane has ended because its GPU reported a fault."""
        self.quiet = AFTER
        if self.most:
            self.most = max(self.most, self.most_after_a_fault)

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


def is_taken(end: socket.socket) -> bool:
    """In a spare that is not ready: whether it is given something already, or not wanted any more."""
    return bool(select.select([end], [], [], 0)[0])


def wait_to_be_taken(end: socket.socket) -> list[int] | None:
    """In a spare, once all is behind it: the socket, arena, log and perhaps the shared inputs that it is
    given. None: it is not wanted."""
    with end:
        try:
            end.send(READY)
        except OSError:
            pass  # it has been taken already, and what it is given waits to be read
        data, fds, _, _ = socket.recv_fds(end, len(TAKE), MOST_FDS)
    return fds if data == TAKE and 3 <= len(fds) <= MOST_FDS else None
