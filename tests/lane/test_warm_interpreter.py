"""An interpreter that is kept between runs, as a run and others find it."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

native = pytest.importorskip("assay_native", reason="build the target assay_native_module")
REQUEST = b'{"v": 1, "environment": []}'


@pytest.fixture
def keeper(root):
    """Its address; it has imported the fake framework, and ends two seconds after the last question."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")
    listener.listen()
    paths = [root / "python", pathlib.Path(native.__file__).parent, root / "tests/engine/fake"]
    environment = {
        **os.environ,
        "ASSAY_FRAMEWORK_MODULE": "fake_framework",
        "PYTHONPATH": ":".join(map(str, paths)),
    }
    fd = listener.fileno()
    process = subprocess.Popen(
        ["bash", "-c", f"exec {sys.executable} -m assay.server --framework fake --keep 2 3<&{fd}"],
        pass_fds=[fd],
        env=environment,
    )
    yield listener.getsockname()
    listener.close()
    assert process.wait(60) == 0


def ask(address, request=REQUEST, meanwhile=None):
    """What it answers, and what the server that it has forked says of itself ("" where it made none).
    Calls `meanwhile` with the address of that server, which ends afterwards."""
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.bind("")
    ours.listen()
    reading, writing = os.pipe()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(60)
    connection.connect(address)
    socket.send_fds(connection, [request], [ours.fileno(), writing, 2])
    os.close(writing)
    answer, fds, _, _ = socket.recv_fds(connection, 4096, 1)
    with os.fdopen(reading) as voice:
        said = voice.readline()
        if meanwhile:
            meanwhile(ours.getsockname())
    for fd in fds:
        os.close(fd)
    return answer, said


def test_each_run_gets_a_server_of_its_own(keeper):
    first, hello = ask(keeper)
    second, _ = ask(keeper)
    assert json.loads(hello)["framework"] == "fake"
    assert json.loads(first)["pid"] != json.loads(second)["pid"]


@pytest.mark.parametrize(
    "request_text",
    [
        b"no JSON",
        b"[1]",
        b'{"v": 2, "environment": []}',
        b'{"v": 1}',
        b'{"v": 1, "environment": ["=x"]}',
        b'{"v": 1, "environment": {"A": "b"}}',
        b"[" * 4000,
    ],
)
def test_what_is_no_request_gets_nothing_and_harms_nobody(keeper, request_text):
    assert ask(keeper, request_text) == (b"", "")
    assert json.loads(ask(keeper)[1])["framework"] == "fake"


def test_a_server_has_the_environment_of_its_run(keeper):
    def start_lane(address):
        slot = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        slot.settimeout(60)
        slot.connect(address)
        (end, _), arena = socket.socketpair(), os.memfd_create("arena")
        reading, writing = os.pipe()
        request = b'{"v": 1, "device": "cpu", "outside_mps": false}'
        socket.send_fds(slot, [request], [end.fileno(), arena, writing])
        os.close(writing)
        with os.fdopen(reading) as log:
            said.append(log.readline())

    said = []
    ask(keeper, b'{"v": 1, "environment": ["ASSAY_SPARES=3", "FAKE_TELLS_OF_SPARES=a=b"]}', start_lane)
    assert said == ["spares: 3\n"]
