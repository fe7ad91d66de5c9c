"""Lanes that are forked ahead: how many there are, who gets one, what comes of one that dies."""

import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from assay import spares
from assay.server import fork_group, kill_group
from assay.spares import Kind, Spares

ARENA_BYTES = 1 << 38
ADDRESS = 16  # in ArenaHeader: set once a lane has opened its channel


class Forks:
    """What stands in the place of fork()."""

    def __init__(self):
        self.made = {}  # process -> kind and its end of the socket
        self.fails = False

    def __call__(self, kind, ours, theirs):
        if self.fails:
            raise OSError("no process is left")
        pid = 1000 + len(self.made)
        self.made[pid] = kind, theirs.dup()
        return pid

    def kinds(self):
        return sorted(kind for kind, _ in self.made.values())


@pytest.fixture
def clock(monkeypatch):
    """The time that spares see; it stands."""
    now = [100.0]
    monkeypatch.setattr(spares.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def made(monkeypatch, clock):
    """Makes the spares of a server, and what forks for them."""

    def make(most, own_mps=False):
        monkeypatch.setenv(spares.SPARES, str(most))
        if own_mps:
            monkeypatch.setenv(spares.OWN_MPS, "1")
        else:
            monkeypatch.delenv(spares.OWN_MPS, raising=False)
        forks = Forks()
        return Spares(forks), forks

    return make


def ready(of, forks):
    """Makes all that are missing, and lets each say that it is ready."""
    while (spare := of.make()) is not None:
        forks.made[spare.pid][1].send(spares.READY)
        assert of.heard(spare.end)


def test_the_end_of_a_slot_ends_them(made, clock):
    of, forks = made(2)
    of.take(Kind("gpu:0", False), [])
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    assert of.dismiss() == list(forks.made)
    assert of.make() is None
    assert of.take(Kind("gpu:0", False), []) is None, "a spare that is being killed"
    for pid in forks.made:
        assert of.ended(pid)
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    assert len(forks.made) == 4, "they did not die by themselves"


def test_they_are_made_once_the_first_lanes_have_begun(made, clock):
    of, forks = made(2)
    assert of.make() is None, "nobody has asked for a lane"
    assert of.take(Kind("gpu:0", False), []) is None
    assert of.make() is None
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    assert forks.kinds() == [Kind("gpu:0", False)] * 2
    assert not of.missing()


@pytest.mark.parametrize(("most", "device"), [(2, "cpu"), (0, "gpu:0")])
def test_none_are_made_of_what_begins_fast_or_has_no_room(made, clock, most, device):
    of, forks = made(most)
    of.take(Kind(device, False), [])
    clock[0] += 100
    assert of.make() is None
    assert not of.missing()


def test_beside_an_mps_there_are_some_apart_from_it(made, clock):
    of, forks = made(2, own_mps=True)
    of.take(spares.kind_of("gpu:0", False), [])
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    shared, outside_mps = Kind("gpu:0", False), Kind("gpu:0", True)
    assert forks.kinds() == [shared, outside_mps, outside_mps]
    # A fault ends all that go through it.
    assert [forks.made[pid][0] for pid in of.poisoned()] == [shared]
    assert of.take(spares.kind_of("gpu:0", True), []) in forks.made


def test_one_that_is_taken_gets_the_descriptors_and_is_made_again(made, clock):
    of, forks = made(1)
    kind = Kind("gpu:0", False)
    of.take(kind, [])
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    reading, writing = os.pipe()
    pid = of.take(kind, [writing, writing, writing])
    message, fds, _, _ = socket.recv_fds(forks.made[pid][1], 100, 3)
    assert message == spares.TAKE
    os.write(fds[2], b"log")
    assert os.read(reading, 3) == b"log"
    assert of.take(kind, []) is None, "there was one"
    assert of.make() is None, "slots are asking for lanes"
    clock[0] += spares.QUIET
    assert of.make().pid != pid


def test_many_requests_at_the_start_are_waited_for_like_one(made, clock):
    of, forks = made(1)
    for _ in range(16):
        assert of.take(Kind("gpu:0", False), []) is None
    clock[0] += spares.QUIET_AFTER_A_FAULT
    assert of.make() is None, "the run's own lanes are just making their contexts"
    clock[0] += spares.FIRST_AFTER
    assert of.make() is not None


def test_slots_that_begin_one_after_another_are_waited_for(made, clock):
    of, forks = made(1)
    kind = Kind("gpu:0", False)
    for _ in range(16):
        of.take(kind, [])
        clock[0] += 0.5  # as long as two contexts take
        assert of.make() is None
    clock[0] += spares.QUIET
    ready(of, forks)
    # After a fault slots ask again and again, and each lull counts.
    of.fault()
    fds = os.pipe()
    of.take(kind, [*fds, fds[1]])
    clock[0] += spares.QUIET_AFTER_A_FAULT
    assert of.make() is not None


def test_one_that_is_ready_is_taken_first_and_then_one_that_is_not(made, clock):
    forgotten = []
    of, forks = made(2)
    of.forget = forgotten.append
    kind = Kind("gpu:0", False)
    of.take(kind, [])
    clock[0] += spares.FIRST_AFTER
    slow, fast = of.make(), of.make()
    forks.made[fast.pid][1].send(spares.READY)
    assert of.heard(fast.end)
    fds = os.pipe()
    assert of.take(kind, [*fds, fds[1]]) == fast.pid
    assert not forgotten
    theirs = forks.made[slow.pid][1]
    assert not spares.is_taken(theirs)
    assert of.take(kind, [*fds, fds[1]]) == slow.pid
    assert forgotten == [slow.end], "nobody shall wait for what it says"
    assert spares.is_taken(theirs)
    # It gets there later, when nobody listens to it.
    assert len(spares.wait_to_be_taken(theirs)) == 3
    assert of.take(kind, []) is None, "there were two"


def test_after_a_fault_there_are_more(made, clock, monkeypatch):
    monkeypatch.setenv(spares.SPARES_AFTER_A_FAULT, "3")
    of, forks = made(1)
    of.take(Kind("gpu:0", False), [])
    clock[0] += spares.FIRST_AFTER
    ready(of, forks)
    assert len(forks.made) == 1
    of.fault()
    ready(of, forks)
    assert len(forks.made) == 3


def test_where_there_is_no_room_for_spares_a_fault_makes_none(made, clock, monkeypatch):
    monkeypatch.setenv(spares.SPARES_AFTER_A_FAULT, "3")
    of, _ = made(0)
    of.fault()
    of.take(Kind("gpu:0", False), [])
    clock[0] += spares.FIRST_AFTER
    assert of.make() is None


def test_where_none_can_be_made_lanes_are_forked_as_everywhere(made, clock):
    of, forks = made(1)
    kind = Kind("gpu:0", False)
    of.take(kind, [])
    clock[0] += spares.FIRST_AFTER
    for _ in range(spares.MOST_FAILURES):
        spare = of.make()
        forks.made[spare.pid][1].close()  # no memory for its context
        assert not of.heard(spare.end)
        assert of.ended(spare.pid)
    assert of.make() is None
    assert not of.missing()
    assert of.take(kind, []) is None
    assert not of.ended(4), "that is a lane"


def test_a_server_without_processes_left_makes_none(made, clock):
    of, forks = made(1)
    of.take(Kind("gpu:0", False), [])
    clock[0] += spares.FIRST_AFTER
    forks.fails = True
    assert of.make() is None
    assert not of.missing()


# -- a real server, with lanes of the fake framework on the fake GPU --


@pytest.fixture
def server(root):
    """A running server that may make spares, and its address."""
    native = pytest.importorskip("assay_native", reason="build the target assay_native_module")
    library = pathlib.Path(native.__file__).parent
    plugin = library.parent / "tests/device/libfake_device.so"
    if not plugin.exists():
        pytest.skip("build the target fake_device")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("")
    listener.listen()
    reading, writing = os.pipe()
    environment = {
        **os.environ,
        "ASSAY_FRAMEWORK_MODULE": "fake_framework",
        "ASSAY_DEVICE_PLUGIN": str(plugin),
        "FAKE_GPU_BUILDS": "fake",
        spares.SPARES: "2",
        "PYTHONPATH": ":".join(map(str, [root / "python", library, root / "tests/engine/fake"])),
    }
    fds = (listener.fileno(), writing)
    process = subprocess.Popen(
        ["bash", "-c", f"exec {sys.executable} -m assay.server --framework fake 3<&{fds[0]} 4>&{fds[1]}"],
        pass_fds=fds,
        env=environment,
    )
    os.close(writing)
    with os.fdopen(reading) as voice:
        assert json.loads(voice.readline())["framework"] == "fake"
        yield process, listener.getsockname()
        assert process.poll() is None, "the server has ended"
    left = children(process.pid)
    process.terminate()
    process.wait()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left))


def children(pid):
    return set(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def wait_until(true):
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


class Slot:
    """Asks a server for lanes, as a slot does."""

    def __init__(self, address):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(60)
        self.connection.connect(address)
        self.lanes = []

    def lane(self):
        """The process of a new lane, once it has opened its channel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        arena = os.memfd_create("arena")
        os.truncate(arena, ARENA_BYTES)
        request = json.dumps({"v": 1, "device": "gpu:0", "outside_mps": False}).encode()
        socket.send_fds(self.connection, [request], [theirs.fileno(), arena, 2])
        data, fds, _, _ = socket.recv_fds(self.connection, 4096, 1)
        os.close(fds[0])
        self.lanes.append(ours)
        wait_until(lambda: struct.unpack("Q", os.pread(arena, 8, ADDRESS))[0] != 0)
        os.close(arena)
        return json.loads(data)["pid"]


def test_a_fork_that_has_not_run_yet_is_killed_with_its_group():
    for _ in range(20):
        pid = fork_group()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        kill_group(pid)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def test_a_server_gives_spares_away_and_makes_new_ones(server):
    process, address = server
    slot = Slot(address)
    first = slot.lane()
    wait_until(lambda: len(children(process.pid)) == 3)
    waiting = children(process.pid) - {first}
    taken = slot.lane()
    assert taken in waiting, "ready or not, it is ahead of one that is forked now"
    # Killed: nobody has taken it, so that another stands in its place.
    lanes = len(slot.lanes)
    wait_until(lambda: len(children(process.pid)) == lanes + 2)
    victim = max(children(process.pid) - {first, taken})
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in children(process.pid))
    wait_until(lambda: len(children(process.pid)) >= lanes + 1)
    # A slot that hangs up takes its lanes and all spares along, and the next one gets both.
    slot.connection.close()
    wait_until(lambda: not children(process.pid))
    next_slot = Slot(address)
    lane = next_slot.lane()
    wait_until(lambda: len(children(process.pid) - {lane}) == 2)
