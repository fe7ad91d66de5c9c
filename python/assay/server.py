"""The fork server: imports a framework once, then forks a lane whenever a slot asks for one.

It runs no operation and touches no device, because a child forked after that may hang or fail.

Descriptors given by the supervisor:
  3  a listening socket (SOCK_SEQPACKET) on which slots connect, one connection a slot
  4  a pipe for one line of JSON: what was imported, or why it could not be; then an empty line a
     second, as a sign of life

A slot sends {"v": 1, "device": "cpu", "apart": false} with three descriptors: the lane's socket, its arena,
its log. A lane that is to be apart does not go through the run's own MPS (src/device/mps.h).
The answer is {"v": 1, "pid": N, "apart": false} with a pidfd, where "apart" says that it has left an MPS;
later, when that lane has ended, {"v": 1, "exited": N, "signal": S, "code": C, "max_rss_kb": M}. When a slot
hangs up, its lanes are killed.
"""

import argparse
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any

VERSION = 1
LISTEN_FD, READY_FD = 3, 4
# A lane dies first when memory runs out, before anything that remembers.
OOM_SCORE = "1000"
OWN_MPS = "ASSAY_OWN_MPS"  # set where the run has started an MPS for its lanes
PULSE = 1.0  # seconds between signs of life
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


class Server:
    """Owns the connections of slots and the lanes forked for each."""

    def __init__(self, framework: Any, native: Any) -> None:
        self.framework = framework
        self.native = native
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(fileno=LISTEN_FD)
        self.lanes: dict[int, socket.socket] = {}  # pid -> the slot's connection
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
            for key, _ in self.selector.select(PULSE):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj == self.wake_read:
                    os.read(self.wake_read, 4096)
                else:
                    self._request(key.fileobj)
            self._reap()

    def _show_life(self) -> None:
        if time.monotonic() - self.shown < PULSE:
            return
        self.shown = time.monotonic()
        try:
            os.write(READY_FD, b"\n")
        except OSError:
            pass  # the supervisor is busy, or gone, which shows elsewhere

    def _end(self, *_: Any) -> None:
        # Groups, because a case may have started processes that outlive its lane.
        for pid in self.lanes:
            kill_group(pid)
        os._exit(0)

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return  # the slot has gone, or no descriptor is left
        # The address is in a name space that every user of the machine can reach.
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        if CREDENTIALS.unpack(credentials)[1] != os.getuid():
            connection.close()
            return
        self.selector.register(connection, selectors.EVENT_READ)

    def _request(self, connection: Any) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(connection, 4096, 3)
        except OSError:
            data, fds = b"", []
        if not data:
            self._hang_up(connection)
            return
        wanted = wanted_lane(data)
        if wanted is None or len(fds) != 3:
            self._send(connection, {"v": VERSION, "error": "unknown request"})
        else:
            self._fork_lane(connection, fds, *wanted)
        for fd in fds:
            os.close(fd)

    def _fork_lane(self, connection: Any, fds: list[int], device: str, apart: bool) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            self._send(connection, {"v": VERSION, "error": f"cannot fork a lane: {error.strerror}"})
            return
        if pid == 0:
            self._become_lane(fds, device, apart)
        self.lanes[pid] = connection
        pidfd = os.pidfd_open(pid)
        self._send(connection, {"v": VERSION, "pid": pid, "apart": apart and OWN_MPS in os.environ}, [pidfd])
        os.close(pidfd)

    def _hang_up(self, connection: Any) -> None:
        self.selector.unregister(connection)
        connection.close()
        for pid, owner in self.lanes.items():
            if owner is connection:
                kill_group(pid)

    def _reap(self) -> None:
        while self.lanes:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            kill_group(pid)  # what the lane itself started
            connection = self.lanes.pop(pid, None)
            if connection is None or connection.fileno() < 0:
                continue
            code = os.waitstatus_to_exitcode(status)
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

    def _become_lane(self, fds: list[int], device: str, apart: bool) -> None:
        """Never returns."""
        lane_socket, arena, log = fds
        status = 1
        try:
            os.setpgid(0, 0)
            self.native.die_with_parent(signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            # What a case does to its descriptors shall reach the lane's own only.
            for fd in (READY_FD, self.wake_write, *(key.fd for key in self.selector.get_map().values())):
                os.close(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(log, 1)
            os.dup2(log, 2)
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write(OOM_SCORE)
            gc.set_threshold(20_000, 20, 20)  # cases leave few cycles; looking for them took 5%
            from assay.lane import Lane
            from assay.spec import DtypeName, PlaceName, TensorSpec
            from assay.wire import Fields

            if apart and os.environ.pop(OWN_MPS, ""):
                os.environ.pop("CUDA_MPS_PIPE_DIRECTORY", None)
            self.framework.start(device)
            self.native.open(lane_socket, arena, TensorSpec, DtypeName, PlaceName, Fields, device)
            Lane(self.framework, self.native).serve()
            status = 0
        except BaseException as error:
            print(f"assay lane: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)


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
    name = parser.parse_args().framework
    os.environ["ASSAY_FRAMEWORK"] = name
    gc.disable()  # an import makes no garbage worth looking for
    try:
        # Imported here, so that whatever is wrong with the installation becomes one line.
        import assay_native

        from assay.frameworks import load

        assay_native.die_with_parent(signal.SIGTERM)
        framework = load(name)
        # Only now: the tables look whether the reference framework is there.
        from assay.accommodated import told
        from assay.registry import load_all

        tables = load_all()
        facts = describe(framework)
    except BaseException as error:
        answer(error=f"{type(error).__name__}: {error}")
        return 1
    gc.freeze()  # keeps the pages of what is imported shared between all lanes
    gc.enable()  # only now, or all that is imported would be looked through: 0.2 s and more
    python = ".".join(map(str, sys.version_info[:3]))
    known = {"apis": len(tables), "accommodates": told(tables)}
    answer(framework=name, version=framework.version, python=python, **known, **facts)
    Server(framework, assay_native).serve()
    return 0


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
