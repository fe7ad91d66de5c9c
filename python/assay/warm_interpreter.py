"""The kept interpreter: outlives a run with a framework imported, and forks a fork server for each later run.

Its descriptor 3 is a listening socket (SOCK_SEQPACKET) at a secret address. The address is in its record, a
file that only our user can read (src/lane/kept_record.h). A run sends {"v": 1, "environment": ["A=b"]} with
three descriptors: the fork server's listening socket, the pipe for its reports, and its log. The entries are
for the environment of the fork server. The answer is {"v": 1, "pid": N} with a pidfd.

If an imported file has changed, the kept interpreter closes the connection of the run and stops listening. It
also stops listening at SIGTERM, or if no run has connected for a while. It exits when its last fork server
has ended.
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

PATIENCE = 1.0  # seconds to wait for the request of a run that has connected
ABOVE = 16  # larger than the descriptor numbers that a fork server uses
LOOK_AGAIN = 1.0  # seconds between two looks for fork servers that have ended
ENDINGS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP

Stamps = dict[str, tuple[int, int, int]]


def wait_for_runs(listen_fd: int, ready_fd: int, keep: float, record: str = "") -> None:
    """Waits for runs. Returns only in a child forked for a run, with that run's descriptors at these numbers.

    `keep`: seconds without a run after which it stops listening. `record`: path of the record."""
    os.setsid()  # closing the terminal of the first run must not kill this process
    adopt()
    listener = socket.socket(fileno=os.dup(listen_fd))
    os.close(listen_fd)
    with held(record, listener) as mine:
        if mine is not None:
            os.write(mine, b"ready\n")
    imported = stamps(files_of_modules())
    children: set[int] = set()
    left = False  # the last look killed processes that ended fork servers had left
    asked = time.monotonic()
    told_to_end: list[int] = []
    for number in ENDINGS:
        signal.signal(number, lambda number, _: told_to_end.append(number))
    while True:
        if gone := ended():
            children -= gone
            left = bool(kill_others(children)) or left
        elif left:
            left = bool(kill_others(children))
        idle = time.monotonic() - asked > keep
        if listener.fileno() < 0 or idle or told_to_end:
            forget(record, listener)  # the next run starts another interpreter
            if not children and not left:
                os._exit(0)
            time.sleep(LOOK_AGAIN)
            continue
        if not select.select([listener], [], [], min(LOOK_AGAIN, keep))[0]:
            continue
        connection, fds, environment = request(listener)
        if fds and stamps(imported) != imported:
            forget(record, listener)
        elif fds:
            asked = time.monotonic()
            pid = os.fork()
            if pid == 0:
                listener.close()
                connection.close()
                become_server(fds, listen_fd, ready_fd)
                os.environ.update(environment)
                return
            children.add(pid)
            tell(connection, pid)
        for fd in fds:
            os.close(fd)
        connection.close()


@contextlib.contextmanager
def held(record: str, listener: socket.socket) -> Iterator[int | None]:
    """A descriptor of the record, locked and open for appending; None if it is another interpreter's."""
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
        pass  # a run that started another interpreter has removed it
    try:
        yield mine
    finally:
        if mine is not None:
            os.close(mine)


def forget(record: str, listener: socket.socket) -> None:
    """Stops listening and removes the record."""
    with held(record, listener) as mine:
        if mine is not None:
            os.unlink(record)
    listener.close()


def request(listener: socket.socket) -> tuple[socket.socket, list[int], dict[str, str]]:
    """A run's connection, the three descriptors of its request and the entries of its environment. No
    descriptors if the request is invalid or comes from another user."""
    connection, _ = listener.accept()
    if not is_ours(connection):
        return connection, [], {}
    connection.settimeout(PATIENCE)
    fds: list[int] = []
    try:
        data, fds, _, _ = socket.recv_fds(connection, 4096, 3)
        if (environment := entries(data)) is not None and len(fds) == 3:
            return connection, fds, environment
    except (OSError, ValueError, RecursionError):
        pass
    for fd in fds:
        os.close(fd)
    return connection, [], {}


def entries(data: bytes) -> dict[str, str] | None:
    """The environment of a request by name. None if the data are no valid request."""
    asked = json.loads(data)
    if not isinstance(asked, dict) or asked.keys() != {"v", "environment"} or asked["v"] != VERSION:
        return None
    named = asked["environment"]
    if not isinstance(named, list) or not all(isinstance(one, str) and "=" in one[1:] for one in named):
        return None
    return dict(one.split("=", 1) for one in named)


def become_server(fds: list[int], listen_fd: int, ready_fd: int) -> None:
    """In the forked child: moves the three descriptors of a request to where the fork server expects them."""
    os.setpgid(0, 0)
    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    lifted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, ABOVE) for fd in fds]
    for fd in fds:
        os.close(fd)
    listening, telling, log = lifted
    for source, target in ((listening, listen_fd), (telling, ready_fd), (log, 1), (log, 2)):
        os.dup2(source, target)
    for fd in lifted:
        os.close(fd)


def tell(connection: socket.socket, pid: int) -> None:
    """Answers a run with the process id and a pidfd of its server. Kills the server if the run is gone."""
    try:
        os.setpgid(pid, pid)  # become_server() does the same: either process may run first
    except OSError:
        pass
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(connection, [json.dumps({"v": VERSION, "pid": pid}).encode()], [pidfd])
    except OSError:
        os.kill(pid, signal.SIGKILL)  # the run has ended
    os.close(pidfd)


def ended() -> set[int]:
    """Reaps the children that have ended since the last call, and returns their process ids."""
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
    """Inode, size and modification time of each existing file. They change when it is written or replaced."""
    found: Stamps = {}
    for file in files:
        try:
            facts = os.stat(file)
            found[file] = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        except OSError:
            pass
    return found
