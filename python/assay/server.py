"""The fork server: imports a framework once, then forks a lane whenever a slot asks for one.

It runs no operation and touches no device, because a process that has done so cannot be forked safely.

Descriptors from the supervisor (or from a run, if a kept interpreter forked the server; see
assay.warm_interpreter):
  3  a listening socket (SOCK_SEQPACKET); each slot has one connection
  4  a pipe for one line of JSON: what was imported, or the error. Then an empty line each second as a
     sign of life, {"left": ["sleep"]} after the server has killed processes that cases left running, and
     {"notes": ["…"]} for the user

A slot sends {"v": 1, "device": "cpu", "outside_mps": false} with three descriptors: the lane's socket,
arena and log. With "outside_mps" the lane runs outside of the run's own MPS (src/device/mps.h). The answer is
{"v": 1, "pid": N, "outside_mps": false} with a pidfd. "outside_mps" is true only if the run has an MPS that
the lane has left. When the lane ends, the server sends
{"v": 1, "exited": N, "signal": S, "code": C, "max_rss_kb": M}. When a slot closes its connection, the server
kills its lanes. A lane on a GPU may be forked ahead of its request (assay.spares).
"""

import argparse
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from typing import Any

from assay import build_identity, extensions, own_tables
from assay.orphans import adopt, children, kill_others
from assay.peers import VERSION, is_ours
from assay.private_folder import use_private_folder
from assay.shared import EXECUTIONS, FAULT_EXIT, OWN_MPS
from assay.spares import MOST_FDS, Kind, Spares, is_taken, kind_of, wait_to_be_taken
from assay.warm_interpreter import ENDINGS, forget, wait_for_runs
from assay.wire import Stop, text_of

LISTEN_FD, READY_FD = 3, 4
# When memory runs out, the kernel kills lanes first, because other processes hold results.
OOM_SCORE = "1000"
PULSE = 1.0  # seconds between signs of life
LOOK_AGAIN = 0.1  # seconds between two looks while a spare lane is missing
END_LIMIT = 2.0  # seconds at most for killing processes that cases have started
SWEEP_EVERY = 0.5  # seconds at least between two sweeps
# The end of a lane that MPS has not taken. CUDA's error 807 is transient: MPS restarts after a fault.
MPS_EXIT, MPS_REFUSES = 87, "MPS server is not ready"
MPS_PAUSE = 1.0  # seconds between two tries
MPS_PATIENCE = 10.0  # seconds of refusals after which no lane asks MPS any more


class Server:
    """Owns the connections of slots and the lanes forked for each."""

    def __init__(self, framework: Any, native: Any, folder: str) -> None:
        self.framework = framework
        self.native = native
        self.folder = folder  # of the lanes alone; removed here too, in case that the supervisor is gone
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(fileno=LISTEN_FD)
        self.lanes: dict[int, socket.socket] = {}  # pid -> the slot's connection
        self.spares = Spares(self._fork_spare, lambda end: self.selector.unregister(end))
        self.wake_read, self.wake_write = os.pipe()
        self.shown = 0.0  # time of the last sign of life
        self.own: set[int] = set()  # child processes that the import has started
        self.sweep_due = False  # a lane has ended since the last sweep, or that sweep killed processes
        self.ending = False  # the supervisor has asked to end, or has ended
        self.swept = 0.0  # time of the last sweep
        self.left: list[str] = []  # commands that the last sweep found
        self.refused: list[float] = []  # times of the first and the last refusal by MPS
        for end in (self.wake_read, self.wake_write, READY_FD):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Serves slots until SIGTERM. The kernel sends that also when the supervisor, our parent, ends."""
        adopt()
        self.own = set(children().get(os.getpid(), {}))
        signal.signal(signal.SIGTERM, self._asked_to_end)
        # The kernel sends SIGHUP if the supervisor ends while this server is stopped.
        signal.signal(signal.SIGHUP, self._asked_to_end)
        signal.set_wakeup_fd(self.wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.wake_read, selectors.EVENT_READ)
        while not self.ending:
            self._show_life()
            for key, _ in self.selector.select(LOOK_AGAIN if self.spares.missing() else PULSE):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj == self.wake_read:
                    os.read(self.wake_read, 4096)
                elif key.data == "spare":
                    if key.fileobj.fileno() >= 0:  # otherwise the spare was taken a moment ago
                        self.selector.unregister(key.fileobj)  # a spare sends one message only
                        self.spares.heard(key.fileobj)
                else:
                    self._request(key.fileobj)
            self._reap()
            self._sweep()
            if (made := self.spares.make()) is not None:
                self.selector.register(made.end, selectors.EVENT_READ, "spare")
        self._end()

    def _asked_to_end(self, *_: Any) -> None:
        # The loop ends itself: an interrupted sweep would not report what it has killed.
        self.ending = True

    def _show_life(self) -> None:
        if time.monotonic() - self.shown < PULSE:
            return
        self.shown = time.monotonic()
        try:
            os.write(READY_FD, b"\n")
        except BrokenPipeError:
            self.ending = True  # the supervisor has ended
        except OSError:
            pass  # the supervisor is busy, and the pipe is full

    def _end(self) -> None:
        # What lanes have started becomes our child when they have ended.
        until = time.monotonic() + END_LIMIT
        lanes = {*self.lanes, *self.spares.waiting}
        for pid in lanes:
            kill_group(pid)
        left: list[str] = []
        while time.monotonic() < until:
            ended = {pid for pid in lanes if has_ended(pid)}
            found = kill_others({*lanes, *self.own})
            left += found
            lanes -= ended
            if not found and not lanes:
                break
            time.sleep(0.005)
        self._tell_of(sorted(set(left)))
        while kill_others(set()) and time.monotonic() < until:
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return  # the slot is gone, or this process has no free descriptor
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

    def _fork_lane(self, connection: Any, fds: list[int], device: str, outside_mps: bool) -> None:
        kind = kind_of(device, outside_mps)
        pid = self.spares.take(kind, fds)
        if pid is None:
            try:
                pid = fork_group()
            except OSError as error:
                why = f"cannot fork a lane: {error.strerror} (`ulimit -u` limits them)"
                self._send(connection, {"v": VERSION, "error": why})
                return
            if pid == 0:
                self._become_lane(kind, fds)
        self.lanes[pid] = connection
        pidfd = os.pidfd_open(pid)
        self._send(connection, {"v": VERSION, "pid": pid, "outside_mps": kind.outside_mps}, [pidfd])
        os.close(pidfd)

    def _fork_spare(self, kind: Kind, ours: socket.socket, theirs: socket.socket) -> int:
        pid = fork_group()
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
        for spare in self.spares.dismiss():
            kill_group(spare)

    def _reap(self) -> None:
        while (pid := next_ended()) is not None:
            ours = pid in self.lanes or pid in self.spares.waiting
            if ours:
                kill_group(pid)  # before the lane is reaped: afterwards the number may be reused
            _, status, usage = os.wait4(pid, 0)
            self.sweep_due = True
            code = os.waitstatus_to_exitcode(status)
            if ours and code == MPS_EXIT:
                self._refused_by_mps(time.monotonic())
            if not ours or self.spares.ended(pid):
                continue
            connection = self.lanes.pop(pid, None)
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

    def _refused_by_mps(self, now: float) -> None:
        """The slot goes on outside of MPS for this batch. The next one asks MPS again, unless that has
        refused for long."""
        if not self.refused or now - self.refused[1] > MPS_PATIENCE:
            self.refused = [now, now]
            self._note("the run's MPS takes no new lanes at the moment; the lanes concerned do without it")
        self.refused[1] = now
        if now - self.refused[0] > MPS_PATIENCE and os.environ.pop(OWN_MPS, None):
            os.environ.pop("CUDA_MPS_PIPE_DIRECTORY", None)
            self._note("the run's MPS has not recovered; all new lanes do without it")

    def _tell(self, text: str, **told: list[str]) -> None:
        """Writes a line to the log, and `told` to the supervisor, unless that is busy or has ended."""
        print(f"assay: {text}", file=sys.stderr, flush=True)
        try:
            os.write(READY_FD, (json.dumps(told) + "\n").encode())
        except OSError:
            pass

    def _note(self, text: str) -> None:
        """Tells the user something."""
        self._tell(text, notes=[text])

    def _sweep(self) -> None:
        """Kills processes that ended lanes have left in process groups or sessions of their own."""
        now = time.monotonic()
        if not self.sweep_due or now - self.swept < SWEEP_EVERY:
            return
        self.swept = now
        left = kill_others({*self.lanes, *self.spares.waiting, *self.own})
        self.sweep_due = bool(left)
        self._tell_of(left)

    def _tell_of(self, left: list[str]) -> None:
        """Reports the commands of processes that a sweep has killed, unless the sweep before did."""
        if left and left != self.left:
            self._tell(f"killed processes that cases had left running: {', '.join(left)}", left=left)
        self.left = left

    def _send(self, connection: Any, message: dict[str, Any], fds: list[int] | None = None) -> None:
        try:
            socket.send_fds(connection, [json.dumps(message).encode()], fds or [])
        except OSError:
            pass  # the slot is gone; the next read from it reports that

    def _become_lane(
        self, kind: Kind, fds: list[int] | None = None, spare: socket.socket | None = None
    ) -> None:
        """Runs a lane and exits. A spare first opens its device and waits for its descriptors."""
        status = 1
        try:
            self._leave()
            # main() has imported these before the fork.
            from assay.lane import Lane
            from assay.spec import DtypeName, PlaceName, TensorSpec
            from assay.wire import Fields

            if kind.outside_mps:
                os.environ.pop("CUDA_MPS_PIPE_DIRECTORY", None)
            if fds is not None:
                print_to(fds[2])
            if registers := not kind.device.startswith(("cpu", "gpu")):  # a module may register the device
                extensions.load_in_lane()
            self.framework.start(kind.device)
            if not registers:
                extensions.load_in_lane()
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
            text = f"{type(error).__name__}: {text_of(error)}"
            print(f"assay lane: {text}", file=sys.stderr, flush=True)
            if MPS_REFUSES in text and "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
                time.sleep(MPS_PAUSE)  # for a user's own MPS, which a lane cannot leave
                status = MPS_EXIT
        finally:
            os._exit(status)

    def _leave(self) -> None:
        """Detaches a forked child from the server."""
        self.native.die_with_parent(signal.SIGKILL)
        adopt()
        signal.set_wakeup_fd(-1)
        # A case may use any descriptor number, so the lane must not keep the server's descriptors.
        registered = (key.fd for key in self.selector.get_map().values())
        spares = (spare.end.fileno() for spare in self.spares.waiting.values())
        for fd in {READY_FD, self.wake_write, *registered, *spares}:
            os.close(fd)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
        gc.set_threshold(20_000, 20, 20)  # cases make few cycles; the default thresholds cost 5%
        self.native.scramble(True)  # as in kLaneEnvironment of src/lane/fork_server.cc


def print_to(log: int) -> None:
    """Redirects standard output and standard error of this process to the descriptor."""
    os.dup2(log, 1)
    os.dup2(log, 2)


def wanted_lane(data: bytes) -> tuple[str, bool] | None:
    """The device of a request, and whether its lane is outside the run's MPS. None for an invalid request."""
    try:
        request = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("v") != VERSION:
        return None
    device, outside_mps = request.get("device"), request.get("outside_mps")
    return (device, outside_mps) if isinstance(device, str) and isinstance(outside_mps, bool) else None


def next_ended() -> int | None:
    """The process id of a child that has ended and is not reaped yet; None if there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it is reaped then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def fork_group() -> int:
    """Forks. The child leads a process group from the start: kill_group() finds it before it has run."""
    pid = os.fork()
    try:
        os.setpgid(pid, pid)  # in both processes: either may run first
    except OSError:
        pass  # the child has ended
    return pid


def kill_group(pid: int) -> None:
    """Kills the process group of a lane, unless it has ended."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def main() -> int:
    """Imports the framework and serves slots until the run ends. Returns 1 if the import fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", required=True)
    parser.add_argument("--keep", type=float, help="seconds to stay after the last run")
    parser.add_argument("--kept-record", default="", help="file with the address for later runs")
    options = parser.parse_args()
    name = options.framework
    os.environ["ASSAY_FRAMEWORK"] = name
    gc.disable()  # an import makes little garbage
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an import that a signal ends has not failed
    for number in ENDINGS if options.keep is not None else ():
        signal.signal(number, lambda *_: sys.exit(1))  # removes the record below
    try:
        # Imported here, so that a broken installation becomes a one-line error.
        import assay_native

        assay_native.scramble(False)  # only lanes need it, and it adds 20 to 40 ms to an import
        from assay.frameworks import load

        # Under compute-sanitizer, the parent is one of the sanitizer's threads, which may end early.
        if "ASSAY_SANITIZER_LOG" not in os.environ and options.keep is None:
            assay_native.die_with_parent(signal.SIGTERM)
        framework = load(name)
        extensions.load(framework)
        # After load(), because the tables check whether the reference framework is installed.
        from assay.known_deviation_page import told
        from assay.registry import load_all

        tables = load_all()
        import_lane()
        facts = describe(framework)
        facts |= {"build": build_identity.build(framework), "machine": build_identity.machine()}
        facts["uncompiled"] = uncompiled(sys.modules.get(name))
    except BaseException as error:
        if options.keep is None:
            if isinstance(error, extensions.Missing):
                answer(error=str(error), module=error.module)
            else:
                answer(error=f"{type(error).__name__}: {text_of(error)}")
        else:  # the run then imports the framework itself, and gets the error
            forget(options.kept_record, socket.socket(fileno=LISTEN_FD))
        return 1
    gc.freeze()  # so that the collector does not touch imported objects: all lanes share their pages
    gc.enable()  # after freeze(), because a collection of all imported objects takes 0.2 s
    if options.keep is not None:
        wait_for_runs(LISTEN_FD, READY_FD, options.keep, options.kept_record)
    python = ".".join(map(str, sys.version_info[:3]))
    known = {"apis": len(tables), "accommodates": told(tables), "own": own_tables.names(tables)}
    if wrong := wrong_setting(framework):
        answer(error=wrong, setting=True)
        return 1
    answer(framework=name, version=framework.version, python=python, **known, **facts)
    Server(framework, assay_native, use_private_folder()).serve()
    return 0


def import_lane() -> None:
    """Imports the modules that every lane needs. Without a bytecode cache, each lane would need 20 ms."""
    from assay.execution import names

    for module in ("lane", *(f"execution.{name}" for name in names())):
        importlib.import_module(f"assay.{module}")


def describe(framework: Any) -> dict[str, Any]:
    """Facts about the build: kinds of devices, executions, notes on executions, and whether it can
    differentiate."""
    from assay.execution import names

    return {
        "devices": extensions.kinds(framework),
        "executions": names(),
        "notes": (framework.notes() if hasattr(framework, "notes") else {}) | extensions.notes(framework),
        "gradients": getattr(framework, "has_gradients", True),
    }


def wrong_setting(framework: Any) -> str:
    """Why an execution of the run's lanes cannot have its setting; "" if each can."""
    from assay.execution import Execution

    try:
        for name in filter(None, os.environ.get(EXECUTIONS, "").split("+")):
            Execution(name, framework)
    except Stop as reason:
        return str(reason)
    return ""


def uncompiled(package: Any) -> str:
    """The folder of a package for which Python finds no bytecode and has written none, so that each import
    compiles it; "" if there is bytecode."""
    cached = getattr(getattr(package, "__spec__", None), "cached", None)
    return "" if cached is None or os.path.exists(cached) else os.path.dirname(package.__file__)


def answer(**fields: Any) -> None:
    """Reports these fields to the supervisor, as one line of JSON."""
    os.write(READY_FD, (json.dumps({"v": VERSION, **fields}) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
