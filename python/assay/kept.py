"""An interpreter that stays between runs, with a framework imported: it forks a server for each that asks.

It was given one descriptor, 3: a listening socket (SOCK_SEQPACKET) whose address says all that an import
may hang on (src/lane/kept_server.h). A run sends {"v": 1, "server": true} with three descriptors: what its
fork server listens on, tells of itself on, and prints to. The answer is {"v": 1, "pid": N} with a pidfd.

It hangs up on who asks when a file of what it has imported is another than at that time, and ends then, or
when nobody has asked for a while, as soon as no fork server that it has made is left.
"""

import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from assay.peers import VERSION, is_ours

PATIENCE = 10.0  # seconds for a run that has connected to say what it wants
ABOVE = 16  # the numbers that descriptors are to have
LOOK_AGAIN = 1.0  # seconds between looks at which fork servers have ended

Stamps = dict[str, tuple[int, int, int]]


def wait_for_runs(listen_fd: int, ready_fd: int, keep: float) -> None:
    """Returns in a child that was forked for a run, whose descriptors stand at the two numbers."""
    os.setsid()  # who ends the first run with its terminal does not end this
    listener = socket.socket(fileno=os.dup(listen_fd))
    os.close(listen_fd)
    imported = stamps(files_of_modules())
    children: set[int] = set()
    asked = time.monotonic()
    while True:
        children -= ended()
        idle = time.monotonic() - asked > keep
        if listener.fileno() < 0 or idle:
            listener.close()  # the next run starts another one
            if not children:
                os._exit(0)
            time.sleep(LOOK_AGAIN)
            continue
        if not select.select([listener], [], [], min(LOOK_AGAIN, keep))[0]:
            continue
        connection, fds = request(listener)
        if fds and stamps(imported) != imported:
            listener.close()
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


def request(listener: socket.socket) -> tuple[socket.socket, list[int]]:
    """A run's connection and its three descriptors; none where it is not a request of our user."""
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
        os.setpgid(pid, pid)  # in both processes, as either may come first
    except OSError:
        pass
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(connection, [json.dumps({"v": VERSION, "pid": pid}).encode()], [pidfd])
    except OSError:
        os.kill(pid, signal.SIGKILL)  # the run is gone
    os.close(pidfd)


def ended() -> set[int]:
    """The children that have ended since the last call."""
    found = set()
    try:
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            found.add(pid)
    except ChildProcessError:
        pass
    return found


def files_of_modules() -> set[str]:
    """The files of all that is imported, and of the libraries that came with it."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    with open("/proc/self/maps") as maps:
        files |= {line.split(maxsplit=5)[5].strip() for line in maps if " /" in line}
    return {file for file in files if isinstance(file, str) and file.startswith("/")}


def stamps(files: Any) -> Stamps:
    """Of each file what changes when somebody writes or replaces it; nothing where it is gone."""
    found: Stamps = {}
    for file in files:
        try:
            facts = os.stat(file)
            found[file] = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        except OSError:
            pass
    return found
