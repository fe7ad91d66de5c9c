"""A framework that does on demand what real ones do by accident: crash, hang, differ, leak.

Tensors are plain memory. Its APIs are `paddle.fake.*`; the reference of each is well-behaved.
"""

import ctypes
import math
import os
import pathlib
import signal
import socket
import time
import weakref

from assay import timed
from assay.frameworks import Dense
from assay.lane_state import LaneState
from assay.wire import DTYPES, count_of
from fake_apis import CLOCK, many_numbers, many_parts

SIZES = dict(zip(DTYPES, (1, 1, 2, 4, 8, 1, 2, 2, 4, 8, 8, 16, 1, 1, 2, 4, 8), strict=True))


BROKEN = "FAKE_BROKEN" in os.environ
OPENED = []  # devices that this process or its parent has opened
timed.CLOCK = CLOCK
timed._switches = lambda: 0  # what the kernel does meanwhile is this machine's affair as well


class FakeTensor:
    alive = weakref.WeakSet()

    def __init__(self, shape, dtype):
        self.alive.add(self)
        self.shape, self.dtype = tuple(shape), dtype
        self.memory = ctypes.create_string_buffer(max(1, count_of(shape) * SIZES[dtype]))

    def copy(self):
        other = FakeTensor(self.shape, self.dtype)
        ctypes.memmove(other.memory, self.memory, len(self.memory))
        return other


def wait_for_file(path):
    until = time.monotonic() + 100
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise RuntimeError(f"nobody has made {path}")
        time.sleep(0.01)


class Fake:
    """What assay.frameworks.Framework asks for."""

    tensor_type = FakeTensor
    dtypes = {name: name for name in DTYPES}

    def __init__(self):
        self.name = os.environ["ASSAY_FRAMEWORK"]
        self.version = os.environ.get("ASSAY_FAKE_VERSION", "1.0")
        self.calls = 0
        self.poisoned = False
        self.drawn = 0
        self.in_graph = False
        self.mode = "usual"
        self.state = LaneState({"mode": (lambda: self.mode, lambda mode: setattr(self, "mode", mode))})
        if "FAKE_IMPORT_WAITS_FOR_OPENING" in os.environ:
            wait_for_file(os.environ["FAKE_TELLS_OF_OPENING"])

    def compiled(self, function, api):
        def call(*args, **kwargs):
            self.in_graph = True
            try:
                return function(*args, **kwargs)
            finally:
                self.in_graph = False

        return call

    def devices(self):
        builds = os.environ.get("FAKE_GPU_BUILDS", "").split()
        return ["gpu", "cpu"] if self.name in builds else ["cpu"]

    def notes(self):
        return {"to_static": "graphs are pretended"}

    def opened(self):
        return OPENED

    def start(self, device):
        self.device = device
        if "FAKE_MPS_REFUSES" in os.environ and "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
            raise RuntimeError("Error 807: MPS server is not ready to accept new MPS client requests")
        if OPENED:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        if "FAKE_TELLS_OF_SPARES" in os.environ:
            print(f"spares: {os.environ.get('ASSAY_SPARES', 'none')}", flush=True)

    def release(self):
        if "FAKE_TELLS_OF_RELEASES" in os.environ:
            print(f"released while {len(FakeTensor.alive)} tensors are alive", flush=True)

    def peak_kb(self):
        return int(os.environ.get("FAKE_PEAK_KB", "0"))

    def seed(self, seed):
        if self.calls == 0 and "FAKE_TELLS_OF_LANES" in os.environ:
            print("a lane runs its first case", flush=True)
        self.calls += 1

    def empty(self, shape, dtype):
        return FakeTensor(shape, dtype)

    def placed(self, tensor):
        return tensor

    def pointer(self, tensor):
        return ctypes.addressof(tensor.memory)

    def resolve(self, name):
        return getattr(self, "do_" + name.rsplit(".", 1)[1])

    def want_gradient(self, tensor):
        pass

    def constant(self, tensor):
        return tensor

    def as_layout(self, tensor, number):
        return tensor

    def writable(self, tensor):
        return tensor.copy()

    def differentiable(self, tensor):
        return False

    def gradients(self, outputs, inputs, upstream):
        raise AssertionError("nothing is differentiable")

    def dense(self, tensor):
        on_gpu = self.device != "cpu"
        return Dense(tensor, self.pointer(tensor), count_of(tensor.shape), tensor.dtype, tensor.shape, on_gpu)

    def sparse_parts(self, tensor):
        return None

    def dtype_name(self, dtype):
        return None

    def shape(self, tensor):
        return tensor.shape

    def tensor_dtype(self, tensor):
        return tensor.dtype

    def no_kernel(self, error):
        return "no kernel" in str(error)

    def out_of_memory(self, error):
        return isinstance(error, MemoryError)

    def needed_kb(self, error):
        return 0

    # -- the APIs --

    def do_echo(self, x, tag=None):
        return x

    def do_crash(self, x):
        os.kill(os.getpid(), signal.SIGSEGV)

    def do_gpu_fault(self, x):
        """What a kernel that reads where it may not does: nobody hears of it until the GPU is asked."""
        ctypes.CDLL(os.environ["ASSAY_DEVICE_PLUGIN"]).assay_fake_fault()
        return x

    def do_sanitized(self, x):
        """A kernel of which compute-sanitizer has something to say, once it is waited for: this text."""
        if log := os.environ.get("ASSAY_SANITIZER_LOG"):
            with open(os.environ["FAKE_SANITIZER_SAYS"]) as said, open(log, "a") as file:
                file.write(said.read())
        return x

    def do_where(self, x):
        return self.device

    def do_mps(self, x):
        return "shared" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "apart"

    def do_exit(self, x):
        os._exit(3)

    def do_hang(self, x):
        time.sleep(1e6)

    def do_hides_its_start(self, x):
        time.sleep(1.5)
        ctypes.c_int64.from_address(own_arena() + 8).value = 2**63 - 1
        time.sleep(1e6)

    def do_hides_as_idle(self, x):
        time.sleep(1.5)
        ctypes.c_uint32.from_address(own_arena()).value = 0xFFFFFFFF
        time.sleep(1e6)

    def do_prevents_its_answer(self, x):
        import assay_native

        assay_native.reply = lambda *_: None
        return x

    def do_closes_its_channel(self, x):
        self.other_end, own_end = socket.socketpair()
        pair = {self.other_end.fileno(), own_end.fileno()}
        for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - pair:
            link = f"/proc/self/fd/{descriptor}"
            if os.path.exists(link) and os.readlink(link).startswith("socket:"):
                os.dup2(own_end.fileno(), descriptor)
        return x

    def do_slow(self, x, seconds):
        time.sleep(seconds)
        return x

    def do_wrong(self, x):
        other = x.copy()
        other.memory[: SIZES[x.dtype]] = b"\x40" * SIZES[x.dtype]  # far from [-0.5, 0.5) in any float
        return other

    def do_slow_and_wrong(self, x, seconds):
        time.sleep(seconds)
        return self.do_wrong(x)

    def do_poisons(self, x, seconds):
        """Is wrong, and makes wrong what its lane is asked for later."""
        self.poisoned = True
        return self.do_slow_and_wrong(x, seconds)

    def do_poisoned(self, x, seconds):
        time.sleep(seconds)
        return self.do_wrong(x) if self.poisoned else x

    # The same under names that come later: on a GPU small cases run in the order of their texts.
    do_victim, do_worsens = do_poisoned, do_poisons

    def do_changes_mode(self, x):
        self.mode = "unusual"
        return x

    def do_needs_mode(self, x):
        return x if self.mode == "usual" else self.do_wrong(x)

    def do_wrong_at_both_ends(self, x):
        other = self.do_wrong(x)
        other.memory[-SIZES[x.dtype] :] = b"\x40" * SIZES[x.dtype]
        return other

    def do_wrong_in_graphs(self, x):
        return self.do_wrong(x) if self.in_graph else x

    def do_unsteady(self, x):
        """Another value each time, all of them within the tolerance."""
        self.drawn += 1
        other = x.copy()
        floats = (ctypes.c_float * count_of(x.shape)).from_buffer(other.memory)
        floats[0] += self.drawn * 1e-4
        return other

    def do_raises_the_second_time(self, x):
        self.drawn += 1
        if self.drawn % 2 == 0:
            raise ValueError("not twice")
        return x

    def do_raises(self, x):
        raise ValueError("the fake framework does not like this")

    def do_raises_no_text(self, x):
        raise ValueError("bytes that are no text: \udcff")

    def do_exits_by_exception(self, x):
        raise SystemExit(0)

    def do_interrupts_itself(self, x):
        raise KeyboardInterrupt

    def do_gives_no_text(self, x):
        return "bytes that are no text: \udcff"

    def do_gives_no_shape(self, x):
        other = x.copy()
        other.shape = (2, -1)
        return other

    def do_many_numbers(self, x):
        return many_numbers(x)

    def do_many_numbers_one_wrong(self, x):
        rows = many_numbers(x)
        rows[500][700] += 1
        return rows

    def do_many_parts(self, x):
        return many_parts(x)

    def do_many_listed(self, x):
        return "seen"

    # Each has a known fault, and with FAKE_BROKEN another one in the same cases.

    def do_flawed_nan(self, x):
        """Wrong; and NaN."""
        other = self.do_wrong(x)
        if BROKEN:
            (ctypes.c_float * count_of(x.shape)).from_buffer(other.memory)[0] = math.nan
        return other

    def do_flawed_value(self, x):
        """Wrong; and raises."""
        if BROKEN:
            raise RuntimeError("an index is out of range")
        return self.do_wrong(x)

    def do_flawed_raises(self, x):
        """Raises; and raises something else."""
        if BROKEN:
            raise TypeError("a tensor is no argument of this")
        raise ValueError("the fake framework does not like this")

    def do_flawed_at_times(self, x):
        """Right; and wrong."""
        return self.do_wrong(x) if BROKEN else x

    def do_flawed_shape(self, x):
        """Wrong; and of another shape."""
        other = self.do_wrong(x)
        if BROKEN:
            other.shape = (*x.shape, 1)
        return other

    def do_flawed_dies(self, x):
        """Raises; and crashes."""
        if BROKEN:
            os.kill(os.getpid(), signal.SIGSEGV)
        raise ValueError("the fake framework does not like this")

    def do_both_raise(self, x):
        raise ValueError("nor does it like this")

    def do_no_kernel(self, x):
        raise RuntimeError("there is no kernel for this")

    def do_no_kernel_noted(self, x, notes):
        raise RuntimeError("there is no kernel for this")

    def do_has_kernel(self, x, notes, has):
        """Writes whether there are values in its input."""
        with open(notes, "a") as file:
            file.write("filled\n" if any(x.memory[: SIZES[x.dtype] * 16]) else "empty\n")
        if not has:
            raise RuntimeError("there is no kernel for this")
        return x

    def do_noted(self, x, notes):
        return x

    def do_out_of_memory(self, x):
        raise MemoryError("pretended")

    def do_needs_all_memory(self, x, notes):
        """Runs out of memory where another lane of this framework stays, for idle ones keep what they had.

        At first it waits until there is another one, so that it never passes because it was early.
        """
        server = pathlib.Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children")
        first = not os.path.exists(notes)
        for _ in range(400):
            alone = server.read_text().split() == [str(os.getpid())]
            if alone != first:
                break
            time.sleep(0.05)
        with open(notes, "a") as file:
            file.write("alone\n" if alone else "not alone\n")
        if alone:
            return x
        raise MemoryError("pretended: another lane has it")

    def do_contaminated(self, x):
        """Dies unless it is the first case of its lane."""
        if self.calls > 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        return x

    def do_nonsense(self, x):
        """Writes over what the lane says."""
        for fd in range(3, 64):
            try:
                socket.socket(fileno=os.dup(fd)).send(b"nonsense" * 100)
            except OSError:
                pass
        return x

    def do_child(self, x):
        """Leaves a process behind that outlives the call."""
        if os.fork() == 0:
            time.sleep(1e6)
        return x

    def do_dies_idle(self, x, notes):
        """Writes a line for each run; the first time somebody kills the lane once it has answered."""
        with open(notes, "a") as file:
            file.write("run\n")
        if not os.path.exists(notes + ".dead") and os.fork() == 0:
            kill_when_idle(os.getppid(), notes + ".dead")
        return x.copy()

    def do_reference_crash(self, x):
        return x

    def do_takes(self, x, mine, reference):
        """So many microseconds of the pretended clock."""
        CLOCK.now += round(1000 * mine * float(os.environ.get("ASSAY_FAKE_PACE", "1")))
        return x

    def do_takes_by_luck(self, x, notes):
        """A tenth longer in all lanes of the server that comes first."""
        server = str(os.getppid())
        try:
            with open(notes, "x") as file:
                file.write(server)
        except FileExistsError:
            pass
        CLOCK.now += 1_100_000 if pathlib.Path(notes).read_text() == server else 1_000_000
        return x

    def do_dies_later(self, x):
        """Not in the first turns."""
        self.drawn += 1
        CLOCK.now += 1_000_000
        if self.drawn > 5:
            os.kill(os.getpid(), signal.SIGSEGV)
        return x


def own_arena():
    """Its address. What the lane says of itself stands at its start: the job at hand, and since when."""
    with open("/proc/self/maps") as maps:
        return next(int(line.split("-")[0], 16) for line in maps if "assay-arena" in line)


def kill_when_idle(lane, note):
    """Never returns. Our memory is the lane's: its arena is mapped here, too."""
    running = ctypes.c_uint32.from_address(own_arena())
    while running.value != 0xFFFFFFFF:
        time.sleep(0.001)
    os.kill(lane, signal.SIGKILL)
    open(note, "w").close()
    os._exit(0)


def create():
    return Fake()
