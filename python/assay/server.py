"""The fork server: imports a framework once, then forks a lane whenever a slot asks for one.

It runs no operation and touches no device, because a child forked after that may hang or fail.

Descriptors given by the supervisor:
  3  a listening socket (SOCK_SEQPACKET) on which slots connect, one connection a slot
  4  a pipe for one line of JSON: what was imported, or why it could not be; then an empty line a
     second, as a sign of life

One that is kept between runs (assay.kept) has these two of the run that it was forked for.

A slot sends {"v": 1, "device": "cpu", "apart": false} with three descriptors: the lane's socket, its arena,
its log. A lane that is to be apart does not go through the run's own MPS (src/device/mps.h).
The answer is {"v": 1, "pid": N, "apart": false} with a pidfd, where "apart" says that it has left an MPS;
later, when that lane has ended, {"v": 1, "exited": N, "signal": S, "code": C, "max_rss_kb": M}. When a slot
hangs up, its lanes are killed. A lane on a GPU may have been forked ahead (assay.spares).
"""

import argparse
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any

from assay.kept import wait_for_runs
from assay.peers import VERSION, is_ours
from assay.shared import FAULT_EXIT
from assay.spares import MOST_FDS, Kind, Spares, is_taken, kind_of, wait_to_be_taken

LISTEN_FD, READY_FD = 3, 4
# A lane dies first when memory runs out, before anything that remembers.
OOM_SCORE = "1000"
PULSE = 1.0  # seconds between signs of life
LOOK_AGAIN = 0.1  # seconds, where a spare lane is to be made when slots ask for nothing


class Server:
    """Owns the connections of slots and the lanes forked for each."""

    def __init__(self, framework: Any, native: Any) -> None:
        self.framework = framework
        self.native = native
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(fileno=LISTEN_FD)
        self.lanes: dict[int, socket.socket] = {}  # pid -> the slot's connection
        self.spares = Spares(self._fork_spare, lambda end: self.selector.unregister(end))
        self.wake_read, self.wake_write = os.pipe()
        self.shown = 0.0  # when it last gave a sign of life
        for end in (self.wake_read, self.wake_write, READY_FD):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Serves slots until SIGTERM, which also comes when the supervisor, our parent, is gone."""
        signal.signal(signal.SIGTERM, self._end)
        signal.set_wakeup_fd(self.wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.wake_read, selectors.EVENT_READ)
        while True:
            self._show_life()
            for key, _ in self.selector.select(LOOK_AGAIN if self.spares.missing() else PULSE):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj == self.wake_read:
                    os.read(self.wake_read, 4096)
                elif key.data == "spare":
                    if key.fileobj.fileno() >= 0:  # otherwise it has just been taken
                        self.selector.unregister(key.fileobj)  # it has nothing more to say
                        self.spares.heard(key.fileobj)
                else:
                    self._request(key.fileobj)
            self._reap()
            if (made := self.spares.make()) is not None:
                self.selector.register(made.end, selectors.EVENT_READ, "spare")

    def _show_life(self) -> None:
        if time.monotonic() - self.shown < PULSE:
            return
        self.shown = time.monotonic()
        try:
            os.write(READY_FD, b"\n")
        except BrokenPipeError:
            self._end()  # the supervisor is gone
        except OSError:
            pass  # it is busy

    def _end(self, *_: Any) -> None:
        # Groups, because a case may have started processes that outlive its lane.
        for pid in (*self.lanes, *self.spares.waiting):
            kill_group(pid)
        os._exit(0)

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return  # the slot has gone, or no descriptor is left
        if is_ours(connection):
            self.selector.register(connection, selectors.EVENT_READ)
        else:
            connection.close()

    def _request(self, connection: Any) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(connection, 4096, MOST_FDS)
        except OSError:
            data, fds = b"", []
        if not data:
            self._hang_up(connection)
            return
        wanted = wanted_lane(data)
        if wanted is None or not 3 <= len(fds) <= MOST_FDS:
            self._send(connection, {"v": VERSION, "error": "unknown request"})
        else:
            self._fork_lane(connection, fds, *wanted)
        for fd in fds:
            os.close(fd)

    def _fork_lane(self, connection: Any, fds: list[int], device: str, apart: bool) -> None:
        kind = kind_of(device, apart)
        pid = self.spares.take(kind, fds)
        if pid is None:
            try:
                pid = os.fork()
            except OSError as error:
                self._send(connection, {"v": VERSION, "error": f"cannot fork a lane: {error.strerror}"})
                return
            if pid == 0:
                self._become_lane(kind, fds)
        self.lanes[pid] = connection
        pidfd = os.pidfd_open(pid)
        self._send(connection, {"v": VERSION, "pid": pid, "apart": kind.apart}, [pidfd])
        os.close(pidfd)

    def _fork_spare(self, kind: Kind, ours: socket.socket, theirs: socket.socket) -> int:
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become_lane(kind, spare=theirs)
        return pid

    def _hang_up(self, connection: Any) -> None:
        self.selector.unregister(connection)
        connection.close()
        for pid, owner in self.lanes.items():
            if owner is connection:
                kill_group(pid)

    def _reap(self) -> None:
        while self.lanes or self.spares.waiting:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            kill_group(pid)  # what the lane itself started
            if self.spares.ended(pid):
                continue
            connection = self.lanes.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if code == FAULT_EXIT:
                self.spares.fault()
                for spare in self.spares.poisoned():
                    kill_group(spare)
            if connection is None or connection.fileno() < 0:
                continue
            self._send(
                connection,
                {
                    "v": VERSION,
                    "exited": pid,
                    "signal": -code if code < 0 else 0,
                    "code": max(code, 0),
                    "max_rss_kb": usage.ru_maxrss,
                },
            )

    def _send(self, connection: Any, message: dict[str, Any], fds: list[int] | None = None) -> None:
        try:
            socket.send_fds(connection, [json.dumps(message).encode()], fds or [])
        except OSError:
            pass  # the slot is gone; its hang-up is handled where it is read

    def _become_lane(
        self, kind: Kind, fds: list[int] | None = None, spare: socket.socket | None = None
    ) -> None:
        """Never returns. A spare waits for its descriptors once its device is open."""
        status = 1
        try:
            self._leave()
            # They were imported before the fork.
            from assay.lane import Lane
            from assay.spec import DtypeName, PlaceName, TensorSpec
            from assay.wire import Fields

            if kind.apart:
                os.environ.pop("CUDA_MPS_PIPE_DIRECTORY", None)
            if fds is not None:
                print_to(fds[2])
            self.framework.start(kind.device)
            if spare is not None:
                self.native.prepare(kind.device)
                if hasattr(self.framework, "warm") and not is_taken(spare):
                    self.framework.warm()
                fds = wait_to_be_taken(spare)
            if fds is not None:
                lane_socket, arena, log, *inputs = fds
                print_to(log)
                types = TensorSpec, DtypeName, PlaceName, Fields
                self.native.open(lane_socket, arena, *types, kind.device, *inputs)
                Lane(self.framework, self.native).serve()
            status = 0
        except BaseException as error:
            print(f"assay lane: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)

    def _leave(self) -> None:
        """Makes a child of the server a process of its own."""
        os.setpgid(0, 0)
        self.native.die_with_parent(signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        # What a case does to its descriptors shall reach the lane's own only.
        registered = (key.fd for key in self.selector.get_map().values())
        spares = (spare.end.fileno() for spare in self.spares.waiting.values())
        for fd in {READY_FD, self.wake_write, *registered, *spares}:
            os.close(fd)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
        gc.set_threshold(20_000, 20, 20)  # cases leave few cycles; looking for them took 5%
        self.native.scramble(True)  # as kLaneEnvironment of src/lane/fork_server.cc has it


def print_to(log: int) -> None:
    os.dup2(log, 1)
    os.dup2(log, 2)


def wanted_lane(data: bytes) -> tuple[str, bool] | None:
    """The device that a request names, and whether the lane is apart; None for what is no request of ours."""
    try:
        request = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("v") != VERSION:
        return None
    device, apart = request.get("device"), request.get("apart")
    return (device, apart) if isinstance(device, str) and isinstance(apart, bool) else None


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", required=True)
    parser.add_argument("--keep", type=float, help="stay for so many seconds after the last run")
    options = parser.parse_args()
    name = options.framework
    os.environ["ASSAY_FRAMEWORK"] = name
    gc.disable()  # an import makes no garbage worth looking for
    try:
        # Imported here, so that whatever is wrong with the installation becomes one line.
        import assay_native

        assay_native.scramble(False)  # in lanes only: of an import it takes 20 to 40 ms
        from assay.frameworks import load

        # Under compute-sanitizer the parent is a thread of that, which may end.
        if "ASSAY_SANITIZER_LOG" not in os.environ and options.keep is None:
            assay_native.die_with_parent(signal.SIGTERM)
        framework = load(name)
        # Only now: the tables look whether the reference framework is there.
        from assay.accommodated import told
        from assay.registry import load_all

        tables = load_all()
        import_lane()
        facts = describe(framework)
    except BaseException as error:
        if options.keep is None:
            answer(error=f"{type(error).__name__}: {error}")
        return 1  # of one that is kept the run hears the same when it imports by itself
    gc.freeze()  # keeps the pages of what is imported shared between all lanes
    gc.enable()  # only now, or all that is imported would be looked through: 0.2 s and more
    if options.keep is not None:
        wait_for_runs(LISTEN_FD, READY_FD, options.keep)
    python = ".".join(map(str, sys.version_info[:3]))
    known = {"apis": len(tables), "accommodates": told(tables)}
    answer(framework=name, version=framework.version, python=python, **known, **facts)
    Server(framework, assay_native).serve()
    return 0


def import_lane() -> None:
    """Imports what every lane needs; one that has to itself takes 20 ms where no bytecode is kept."""
    from assay.execution import names

    for module in ("lane", *(f"execution.{name}" for name in names())):
        importlib.import_module(f"assay.{module}")


def describe(framework: Any) -> dict[str, Any]:
    """The kinds of device that this build has, the executions, what people should know of those in it, and
    whether it differentiates."""
    from assay.execution import names

    return {
        "devices": framework.devices() if hasattr(framework, "devices") else ["cpu"],
        "executions": names(),
        "notes": framework.notes() if hasattr(framework, "notes") else {},
        "gradients": getattr(framework, "has_gradients", True),
    }


def answer(**fields: Any) -> None:
    os.write(READY_FD, (json.dumps({"v": VERSION, **fields}) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
