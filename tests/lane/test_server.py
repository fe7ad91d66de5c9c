"""The fork server, as anybody who can reach its address finds it."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

native = pytest.importorskip("assay_native", reason="build the target assay_native_module")
NOBODY = 65534


@pytest.fixture
def address(root):
    """Of a running server of the fake framework."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")  # the kernel picks a name
    listener.listen()
    reading, writing = os.pipe()
    paths = [root / "python", pathlib.Path(native.__file__).parent, root / "tests/engine/fake"]
    environment = {
        **os.environ,
        "ASSAY_FRAMEWORK_MODULE": "fake_framework",
        "PYTHONPATH": ":".join(map(str, paths)),
    }
    fds = (listener.fileno(), writing)
    server = subprocess.Popen(
        ["bash", "-c", f"exec {sys.executable} -m assay.server --framework fake 3<&{fds[0]} 4>&{fds[1]}"],
        pass_fds=fds,
        env=environment,
    )
    os.close(writing)
    with os.fdopen(reading) as voice:
        assert json.loads(voice.readline())["framework"] == "fake"
        yield listener.getsockname()
        assert server.poll() is None, "the server has ended"
    server.terminate()
    server.wait()


def connected(address):
    """A connection to the server that does not wait for ever."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(60)
    connection.connect(address)
    return connection


@pytest.mark.parametrize(
    "request_text",
    [
        b"no JSON",
        b"[1]",
        b'{"v": 1}',
        b'{"v": 1, "device": 7, "outside_mps": false}',
        b'{"v": 1, "device": "cpu"}',
        b"[" * 4000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_request_is_answered_and_harms_nobody(address, request_text):
    connection = connected(address)
    connection.send(request_text)
    assert json.loads(connection.recv(4096))["error"] == "unknown request"
    connected(address).send(b'{"v": 1}')


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_hung_up_on(address):
    child = os.fork()
    if child == 0:
        os.setuid(NOBODY)
        try:
            connection = connected(address)
            connection.send(b'{"v": 1}')
            answer = connection.recv(4096)
        except OSError:
            answer = b""
        os._exit(0 if answer == b"" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    connection = connected(address)  # our own user is still served
    connection.send(b"{}")
    assert b"unknown request" in connection.recv(4096)


LANE_AFTER_THE_FORK = """
import sys
from assay.registry import load_all
from assay.server import import_lane
load_all()
import_lane()
before = set(sys.modules)
from assay.execution import Execution
from assay.lane import Lane
from assay.spec import TensorSpec
from assay.wire import Fields
for name in ("eager", "to_static", "amp"):
    Execution(name, None)
print(*sorted(set(sys.modules) - before))
"""


def test_a_forked_lane_has_nothing_left_to_import(root):
    environment = {**os.environ, "PYTHONPATH": str(root / "python")}
    found = subprocess.run(
        [sys.executable, "-c", LANE_AFTER_THE_FORK], env=environment, capture_output=True, text=True
    )
    assert (found.returncode, found.stdout.split()) == (0, []), found.stderr


STOPPED_DURING_A_SWEEP = """
import os, signal, subprocess, tempfile
from assay import server
kill_others = server.kill_others
def interrupted(known):
    killed = kill_others(known)
    if killed:
        os.kill(os.getpid(), signal.SIGTERM)
    return killed
server.kill_others = interrupted
class Leaving(server.Server):
    def _show_life(self):
        if not self.sweep_due:
            subprocess.Popen(["sleep", "300"])
            self.sweep_due = True
Leaving(None, None, tempfile.mkdtemp()).serve()
"""


def test_a_server_stopped_during_a_sweep_reports_what_it_killed(root):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")
        listener.listen()
        reading, writing = os.pipe()
        command = f'exec {sys.executable} -c "$0" 3<&{listener.fileno()} 4>&{writing}'
        server = subprocess.Popen(
            ["bash", "-c", command, STOPPED_DURING_A_SWEEP],
            pass_fds=(listener.fileno(), writing),
            env={**os.environ, "PYTHONPATH": str(root / "python")},
        )
        os.close(writing)
        with os.fdopen(reading) as voice:
            assert json.loads(voice.read()) == {"left": ["sleep"]}
        assert server.wait() == 0
