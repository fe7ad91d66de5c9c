"""Spares: lanes that are forked ahead, for devices on which a lane starts slowly.

On a GPU, a lane needs most of a second for its first result: it makes a context, and loads libraries and each
kernel that it calls. A spare has done that and waits for a slot's socket, arena and log. If there is no
spare, the server forks a lane as usual.
"""

import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.shared import OWN_MPS, SPARES, SPARES_AFTER_A_FAULT

# No spare is made for this many seconds after the first request, because the run's lanes make their contexts.
FIRST_AFTER = 3.0
QUIET = 1.0  # seconds after any later request, because the slots are still starting
QUIET_AFTER_A_FAULT = 0.2  # likewise after a GPU fault: the next fault soon needs more spares
MOST_FAILURES = 3  # in a row; then there seems to be no memory for spares of this kind
READY, TAKE = b"ready", b"take"
# Descriptors that a lane gets: socket, arena, log, and shared inputs if the lanes share any.
MOST_FDS = 4


class Kind(NamedTuple):
    """Spares of one kind serve the same requests."""

    device: str
    outside_mps: bool  # outside the run's MPS


def kind_of(device: str, outside_mps: bool) -> Kind:
    """The kind of spare for a request. Without an MPS of the run, no lane is outside of it."""
    return Kind(device, outside_mps and OWN_MPS in os.environ)


class Spare:
    """A forked process, and our end of its socket."""

    def __init__(self, kind: Kind, pid: int, end: socket.socket) -> None:
        self.kind = kind
        self.pid = pid
        self.end = end
        self.ready = False
        self.wanted = True


class Spares:
    """The spares of a server.

    `fork(kind, ours, theirs)` forks a process that calls wait_to_be_taken(theirs), and returns its id.
    `forget(ours)` is called before the socket of a spare is closed that has not reported that it is ready."""

    def __init__(
        self,
        fork: Callable[[Kind, socket.socket, socket.socket], int],
        forget: Callable[[socket.socket], Any] = lambda _: None,
    ) -> None:
        self.fork = fork
        self.forget = forget
        self.most = int(os.environ.get(SPARES, "0"))  # of each kind; the run's memory budget limits it
        self.quiet = QUIET
        # Faults come in bursts, and each takes up to four spares.
        self.most_after_a_fault = int(os.environ.get(SPARES_AFTER_A_FAULT, "0"))
        self.kinds: dict[Kind, float] = {}  # requested kinds, and the earliest time to make their spares
        self.failures: dict[Kind, int] = {}  # in a row
        self.waiting: dict[int, Spare] = {}  # by process id

    def take(self, kind: Kind, fds: list[int]) -> int | None:
        """Gives these descriptors to a spare and returns its process id; None if there is no spare.

        Takes a spare that is not ready if there is no other. It is still faster than a new lane, because the
        driver creates contexts serially, even across processes."""
        self._wanted(kind)
        of_kind = [spare for spare in self.waiting.values() if spare.kind == kind and spare.wanted]
        for spare in sorted(of_kind, key=lambda spare: not spare.ready):
            del self.waiting[spare.pid]
            if not spare.ready:
                self.forget(spare.end)
            with spare.end:
                try:
                    socket.send_fds(spare.end, [TAKE], fds)
                except OSError:
                    continue  # the spare has just died; reaping it reports that
            return spare.pid
        return None

    def _wanted(self, kind: Kind) -> None:
        if kind.device == "cpu" or not self.most:
            return
        now = time.monotonic()
        # Retries run outside of the MPS if there is one.
        for wanted in {kind, kind_of(kind.device, True)}:
            begun = self.kinds.get(wanted)
            self.kinds[wanted] = now + FIRST_AFTER if begun is None else max(begun, now + self.quiet)

    def fault(self) -> None:
        """Notes that a lane has ended because its GPU reported a fault."""
        self.quiet = QUIET_AFTER_A_FAULT
        if self.most:
            self.most = max(self.most, self.most_after_a_fault)

    def dismiss(self) -> list[int]:
        """No spares until the next request: a slot has ended, as all do with their run. Returns the process
        ids of the spares to kill; the driver would finish their contexts first."""
        self.kinds.clear()
        for spare in self.waiting.values():
            spare.wanted = False
        return list(self.waiting)

    def missing(self) -> bool:
        """Whether spares are missing that make() will fork now or later."""
        return any(self._lacks(kind) for kind in self.kinds)

    def _lacks(self, kind: Kind) -> bool:
        # A retry takes a spare for each of its lanes. Other lanes need one at a time.
        most = self.most if kind == kind_of(kind.device, True) else 1
        there = sum(spare.kind == kind for spare in self.waiting.values())
        return there < most and self.failures.get(kind, 0) < MOST_FAILURES

    def make(self) -> Spare | None:
        """Forks a missing spare and returns it. None if none is missing or slots still ask for lanes."""
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
        """Reads from the socket of a spare. True if the spare is ready, False if it has ended."""
        spare = next(spare for spare in self.waiting.values() if spare.end is end)
        try:
            spare.ready = end.recv(len(READY)) == READY
        except OSError:
            spare.ready = False
        if spare.ready:
            self.failures[spare.kind] = 0
        return spare.ready

    def ended(self, pid: int) -> bool:
        """Whether this ended process was a spare that was never taken."""
        spare = self.waiting.pop(pid, None)
        if spare is None:
            return False
        spare.end.close()
        self.failures[spare.kind] = self.failures.get(spare.kind, 0) + spare.wanted
        return True

    def poisoned(self) -> list[int]:
        """The process ids of spares in the run's MPS, for use after a fault has ended all its clients."""
        if OWN_MPS not in os.environ:
            return []
        return [pid for pid, spare in self.waiting.items() if not spare.kind.outside_mps]


def is_taken(end: socket.socket) -> bool:
    """Called in a spare that is not ready yet: whether it was already taken or is no longer wanted."""
    return bool(select.select([end], [], [], 0)[0])


def wait_to_be_taken(end: socket.socket) -> list[int] | None:
    """Called in a ready spare: waits for its descriptors (socket, arena, log and perhaps shared inputs) and
    returns them; None if the spare is no longer wanted."""
    with end:
        try:
            end.send(READY)
        except OSError:
            pass  # the spare was already taken; its descriptors can be read below
        data, fds, _, _ = socket.recv_fds(end, len(TAKE), MOST_FDS)
    return fds if data == TAKE and 3 <= len(fds) <= MOST_FDS else None
