"""An interpreter that stays between runs with a framework imported, and forks a fork server for each run.

It was given one descriptor, 3: a listening socket (SOCK_SEQPACKET) at an address that nobody can guess. Its
record, a file that only our user can read, leads runs there (src/lane/kept_record.h). A run sends
{"v": 1, "server": true} with three descriptors: the fork server's listening socket, the pipe on which it
reports, and its log. The answer is {"v": 1, "pid": N} with a pidfd.

It hangs up on a run, and stops listening, when a file that it has imported has changed. It also stops
listening when no run has asked for a while. It ends once its last fork server has ended.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from assay.orphans import adopt, kill_others
from assay.peers import VERSION, is_ours

PATIENCE = 1.0  # seconds for the request of a run that has connected
ABOVE = 16  # beyond the numbers that a fork server expects its descriptors at
LOOK_AGAIN = 1.0  # seconds between two looks for fork servers that have ended

Stamps = dict[str, tuple[int, int, int]]


def wait_for_runs(listen_fd: int, ready_fd: int, keep: float, record: str = "") -> None:
    """Returns in a child that was forked for a run, with the run's descriptors at the two numbers."""
    os.setsid()  # the terminal of the first run must not end it
    adopt()
    listener = socket.socket(fileno=os.dup(listen_fd))
    os.close(listen_fd)
    with held(record, listener) as mine:
        if mine is not None:
            os.write(mine, b"ready\n")
    imported = stamps(files_of_modules())
    children: set[int] = set()
    left = False  # the last look found processes that ended fork servers had left
    asked = time.monotonic()
    while True:
        if gone := ended():
            children -= gone
            left = bool(kill_others(children)) or left
        elif left:
            left = bool(kill_others(children))
        idle = time.monotonic() - asked > keep
        if listener.fileno() < 0 or idle:
            forget(record, listener)  # the next run starts another one
            if not children and not left:
                os._exit(0)
            time.sleep(LOOK_AGAIN)
            continue
        if not select.select([listener], [], [], min(LOOK_AGAIN, keep))[0]:
            continue
        connection, fds = request(listener)
        if fds and stamps(imported) != imported:
            forget(record, listener)
        elif fds:
            asked = time.monotonic()
            pid = os.fork()
            if pid == 0:
                listener.close()
                connection.close()
                become_server(fds, listen_fd, ready_fd)
                return
            children.add(pid)
            tell(connection, pid)
        for fd in fds:
            os.close(fd)
        connection.close()


@contextlib.contextmanager
def held(record: str, listener: socket.socket) -> Iterator[int | None]:
    """The record, locked and open at its end; None where it is not this server's any more."""
    mine = None
    try:
        if record and listener.fileno() >= 0:
            mine = os.open(record, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(mine, fcntl.LOCK_EX)
            secret = listener.getsockname().rpartition(b"-")[2]
            if not os.read(mine, 4096).startswith(secret + b" "):
                os.close(mine)
                mine = None
    except OSError:
        pass  # a run that started another server has removed it
    try:
        yield mine
    finally:
        if mine is not None:
            os.close(mine)


def forget(record: str, listener: socket.socket) -> None:
    """Stops listening, and removes the record."""
    with held(record, listener) as mine:
        if mine is not None:
            os.unlink(record)
    listener.close()


def request(listener: socket.socket) -> tuple[socket.socket, list[int]]:
    """A run's connection and its three descriptors; no descriptors unless it is a request of our user."""
    connection, _ = listener.accept()
    if not is_ours(connection):
        return connection, []
    connection.settimeout(PATIENCE)
    fds: list[int] = []
    try:
        data, fds, _, _ = socket.recv_fds(connection, 4096, 3)
        if json.loads(data) == {"v": VERSION, "server": True} and len(fds) == 3:
            return connection, fds
    except (OSError, ValueError, RecursionError):
        pass
    for fd in fds:
        os.close(fd)
    return connection, []


def become_server(fds: list[int], listen_fd: int, ready_fd: int) -> None:
    os.setpgid(0, 0)
    lifted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, ABOVE) for fd in fds]
    for fd in fds:
        os.close(fd)
    listening, telling, log = lifted
    for source, target in ((listening, listen_fd), (telling, ready_fd), (log, 1), (log, 2)):
        os.dup2(source, target)
    for fd in lifted:
        os.close(fd)


def tell(connection: socket.socket, pid: int) -> None:
    try:
        os.setpgid(pid, pid)  # in both processes: either may run first
    except OSError:
        pass
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(connection, [json.dumps({"v": VERSION, "pid": pid}).encode()], [pidfd])
    except OSError:
        os.kill(pid, signal.SIGKILL)  # the run has ended
    os.close(pidfd)


def ended() -> set[int]:
    """Reaps the children that have ended since the last call; returns their numbers."""
    found = set()
    try:
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            found.add(pid)
    except ChildProcessError:
        pass
    return found


def files_of_modules() -> set[str]:
    """The files of all imported modules and of the libraries that they have loaded."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    with open("/proc/self/maps") as maps:
        files |= {line.split(maxsplit=5)[5].strip() for line in maps if " /" in line}
    return {file for file in files if isinstance(file, str) and file.startswith("/")}


def stamps(files: Any) -> Stamps:
    """Inode, size and time of change of each file that exists: they change when it is written or replaced."""
    found: Stamps = {}
    for file in files:
        try:
            facts = os.stat(file)
            found[file] = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        except OSError:
            pass
    return found
