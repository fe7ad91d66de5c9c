"""The native module's fillings, on plain memory."""

import ctypes
import os
import struct
import subprocess
import sys

import pytest
from assay import shared
from assay.wire import CODES, DTYPES

native = pytest.importorskip("assay_native", reason="build the target assay_native_module")

SIZES = dict(zip(DTYPES, (1, 1, 2, 4, 8, 1, 2, 2, 4, 8, 8, 16, 1, 1, 2, 4, 8), strict=True))


def filled(function, dtype, count, *rest, tensor=0):
    """The bytes of `count` elements, between guards that must not be touched."""
    size = count * SIZES[dtype]
    memory = ctypes.create_string_buffer(b"\xaa" * (size + 16), size + 16)
    function(tensor, ctypes.addressof(memory) + 8, count, CODES[dtype], *rest)
    assert memory.raw[:8] == memory.raw[size + 8 :] == b"\xaa" * 8
    return memory.raw[8 : size + 8]


# One and its code in each format.
ONES = {
    "bool": b"\x01", "int8": b"\x01", "uint8": b"\x01", "int16": b"\x01\0", "int32": b"\x01\0\0\0",
    "int64": b"\x01" + bytes(7), "float16": b"\0\x3c", "bfloat16": b"\x80\x3f",
    "float32": b"\0\0\x80\x3f", "float64": bytes(6) + b"\xf0\x3f",
    "complex64": b"\0\0\x80\x3f" + bytes(4), "complex128": bytes(6) + b"\xf0\x3f" + bytes(8),
    "float8_e4m3fn": b"\x38", "float8_e5m2": b"\x3c", "uint16": b"\x01\0", "uint32": b"\x01\0\0\0",
    "uint64": b"\x01" + bytes(7),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_in_every_dtype(dtype):
    assert filled(native.fill, dtype, 5, shared.CONSTANT, 1.0, 1.0, 0) == ONES[dtype] * 5
    assert filled(native.fill_literal, dtype, 2, struct.pack("2d", 1, 1)) == ONES[dtype] * 2
    assert filled(native.fill, dtype, 0) == b""


def test_values_follow_their_rule():
    values = struct.unpack("200i", filled(native.fill, "int32", 200, shared.INTEGERS, -3.0, 4.0, 0))
    assert set(values) == set(range(-3, 4))
    values = struct.unpack("100d", filled(native.fill, "float64", 100, shared.DISTINCT, 0.0, 1.0, 100))
    assert len(set(values)) == 100 and 0 <= min(values) and max(values) < 1
    listed = (0.5, -2.0, float("inf"))
    written = filled(native.fill_literal, "float32", 3, struct.pack("3d", *listed))
    assert struct.unpack("3f", written) == listed


def test_values_depend_on_the_tensor_and_nothing_else():
    first = filled(native.fill, "float32", 64)
    assert filled(native.fill, "float32", 64) == first
    assert filled(native.fill, "float32", 64, tensor=1) != first
    assert filled(native.fill, "float32", 32) == first[:128]
    upstream = filled(native.fill_upstream, "float32", 64, 64)
    assert upstream != first and filled(native.fill_upstream, "float32", 64, 64) == upstream


def test_upstream_gradients_reach_farther_with_larger_inputs():
    values = struct.unpack("64f", filled(native.fill_upstream, "float32", 64, 64))
    wide = struct.unpack("64f", filled(native.fill_upstream, "float32", 64, 64 * 8))
    assert wide == tuple(8 * value for value in values) and -4 <= min(values) < -1 < 1 < max(values) < 4


@pytest.mark.parametrize("function", [native.fill, lambda *target: native.fill_upstream(*target, 1)])
@pytest.mark.parametrize(("count", "dtype"), [(1, len(DTYPES)), (1, -1), (-1, 0)])
def test_bad_numbers_raise(function, count, dtype):
    memory = ctypes.create_string_buffer(16)
    with pytest.raises(RuntimeError, match="bad dtype or count"):
        function(0, ctypes.addressof(memory), count, dtype)
    assert memory.raw == bytes(16)


def test_unknown_kinds_raise():
    memory = ctypes.create_string_buffer(16)
    with pytest.raises(RuntimeError, match="unknown kind"):
        native.fill(0, ctypes.addressof(memory), 1, CODES["float32"], 250, 0.0, 1.0, 0)


def test_bad_literals_raise():
    for values in (struct.pack("2d", 1, 2), struct.pack("4d", 1, 2, 3, 4), b"\0" * 23):
        with pytest.raises(RuntimeError, match="the number of values differs"):
            filled(native.fill_literal, "float32", 3, values)
    with pytest.raises(TypeError):
        filled(native.fill_literal, "float32", 1, [1.0])


def test_without_a_channel_there_is_nothing_to_serve():
    for call in (
        native.next,
        lambda: native.hand_over(0, 0, 0),
        lambda: native.lend(0, 0, 0),
        lambda: native.enter(0),
        lambda: native.reply(0, "", "", [], [], False, (), [], [], 0, False),
    ):
        with pytest.raises(RuntimeError, match="no channel is open"):
            call()


OPEN = """
import mmap, os, resource, socket, time
import assay_native as native
from assay.spec import DtypeName, PlaceName, TensorSpec
from assay.wire import Fields

ends, arena = socket.socketpair(), os.memfd_create("arena")
os.truncate(arena, 1 << 38)
native.open(ends[0].detach(), arena, TensorSpec, DtypeName, PlaceName, Fields, "cpu")
"""

MEMORY = """
about = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in open("/proc/meminfo")}


def room():
    has = int(open("/proc/self/statm").read().split()[5]) * mmap.PAGESIZE
    return resource.getrlimit(resource.RLIMIT_DATA)[0] - has


def gets(size):
    try:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


native.bound_memory(True)  # half for this lane, half for the slot's other one
closely = room()
assert 0 < closely <= about["MemAvailable"] // 2 + (1 << 28), closely
assert gets(closely // 2) and not gets(closely + (1 << 28)), "more than there is"
native.bound_memory(False)
assert closely < room() <= about["MemTotal"] + (1 << 28), room()
assert gets(closely + (1 << 28)) and not gets(2 * about["MemTotal"]), "more than the machine has in all"
"""


TIMES = """
CLOCK = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}[os.environ["ASSAY_STAGE_CLOCK"]]


def in_stage(place):
    native.enter(place)
    began = CLOCK()
    while CLOCK() - began < 2_000_000:
        pass


began = CLOCK()
native.times()
in_stage(1)
in_stage(3)
in_stage(1)
again = CLOCK()
times, took = native.times(), CLOCK() - began
assert times[1] >= 4_000_000 and times[3] >= 2_000_000 and sum(times) <= took, (times, took)
in_stage(2)
times, took = native.times(), CLOCK() - again
assert times[2] >= 2_000_000 and not times[1] and not times[3] and sum(times) <= took, (times, took)
try:
    native.enter(4)
except RuntimeError as error:
    assert "no such stage" in str(error)
else:
    raise AssertionError("there are four")
"""


def run_lane(program, **environment):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    command = [sys.executable, "-c", OPEN + program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr


def test_a_lane_gets_no_more_memory_than_there_is():
    run_lane(MEMORY)


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_time_counts_for_the_stage_that_it_is_spent_in(clock):
    run_lane(TIMES, ASSAY_STAGE_CLOCK=clock)
