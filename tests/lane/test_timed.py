"""A case that is timed, with a clock that tests turn and a framework that takes as long as they say."""

import ctypes

import pytest
from assay import timed
from assay.call import Functions
from assay.frameworks import Dense
from assay.handover import HandOver
from assay.inputs import Context
from assay.regimes import USUAL
from assay.registry import REGISTRY, Api
from assay.spec import TensorSpec
from assay.wire import CODES, DTYPES, Fields, Job, count_of


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


class Tensor:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype
        self.memory = ctypes.create_string_buffer(max(1, 8 * count_of(shape)))
        self.wants_gradient = False


class Framework:
    """`takes` says how many nanoseconds an API takes, and its gradients under "gradients"."""

    name, version = "pretended", "1.0"
    tensor_type = Tensor
    dtypes = {name: name for name in DTYPES}

    def placed(self, tensor):
        return tensor

    def __init__(self, clock, takes):
        self.clock, self.takes = clock, takes
        self.notes = []

    def resolve(self, api):
        def function(*args, **kwargs):
            self.clock.now += self.takes[api]
            self.notes.append((api, args))
            result = Tensor(args[0].shape, args[0].dtype)
            result.wants_gradient = any(arg.wants_gradient for arg in args)
            return result

        return function

    def gradients(self, outputs, inputs, upstream):
        self.clock.now += self.takes["gradients"]
        return [None] * len(inputs)

    def empty(self, shape, dtype):
        return Tensor(shape, dtype)

    def writable(self, tensor):
        copy = Tensor(tensor.shape, tensor.dtype)
        copy.wants_gradient = tensor.wants_gradient
        return copy

    def dense(self, tensor):
        return Dense(tensor, self.pointer(tensor), count_of(tensor.shape), tensor.dtype, tensor.shape)

    def seed(self, seed):
        self.notes.append("seed")

    def want_gradient(self, tensor):
        tensor.wants_gradient = True

    def differentiable(self, tensor):
        return tensor.wants_gradient

    def pointer(self, tensor):
        return ctypes.addressof(tensor.memory)

    def sparse_parts(self, tensor):
        return None

    def as_layout(self, tensor, number):
        return tensor

    def shape(self, tensor):
        return tensor.shape

    def tensor_dtype(self, tensor):
        return tensor.dtype


class Native:
    """The native module as far as a timed case asks for it."""

    LEND_FROM = 1 << 20

    def __init__(self):
        self.evicted = []
        self.filled = []
        self.handed = {}

    def enter(self, place):
        self.stage = place

    def compiling(self, begins):
        pass

    def fill(self, index, *rest):
        self.filled.append(index)

    def fill_upstream(self, *rest):
        self.filled.append("upstream")

    def evict(self, pointer, count, code):
        self.evicted.append((pointer, count, code))

    def hand_over(self, pointer, count, code, on_device=False):
        self.handed[len(self.handed)] = list((ctypes.c_double * count).from_address(pointer))
        return len(self.handed) - 1


def job(api, tensors=2, backward=True):
    specs = tuple(TensorSpec((3,), "float32", i) for i in range(tensors))
    settings = Fields(backward=backward, seed=0, error_bar=False)
    spec = Fields(
        role="test", reference_functions=False, known_only=False, no_gradients=False, twin=False, dump_dir=""
    )
    return Job(api, specs, {}, tensors, 0, settings, spec, None, 42, USUAL, 0, "")


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timed, "CLOCK", made)
    monkeypatch.setattr(timed, "_switches", lambda: 0)
    return made


def case(clock, takes, asked):
    framework, native = Framework(clock, takes), Native()
    return timed.Timed(
        Context(framework, native, Functions(framework, "timed"), HandOver(framework, native)), asked
    )


def samples(call):
    return {leaf.path: call.native.handed[leaf.offset] for leaf in call.outputs}


def test_forward_and_backward_are_told_apart(clock):
    call = case(clock, {"paddle.pretended": 40_000, "gradients": 90_000}, job("paddle.pretended"))
    call.run()
    found = samples(call)
    assert set(found) == {
        f"{part} host {cache}" for part in ("forward", "backward") for cache in ("warm", "cold")
    }
    assert set(found["forward host warm"]) == {40_000}
    assert set(found["backward host warm"]) == {90_000}  # without the calls that they go through
    assert found["forward host cold"] == [40_000]


def test_short_calls_are_timed_several_at_once(clock):
    call = case(clock, {"paddle.pretended": 10_000, "gradients": 10**9}, job("paddle.pretended"))
    call.run()
    calls = {leaf.path: leaf.terms for leaf in call.outputs}
    assert calls["forward host warm"] == 10  # a sample of 100 µs
    assert calls["forward host cold"] == 1  # the second one would find its inputs in the caches
    assert calls["backward host warm"] == 1
    assert set(samples(call)["forward host warm"]) == {10_000}  # of one call
    assert len(samples(call)["backward host warm"]) == 1  # a second of them is a turn


def test_it_is_told_how_many_calls_others_had(clock):
    asked = job("paddle.pretended")._replace(calls=(7, 0))
    call = case(clock, {"paddle.pretended": 10_000, "gradients": 20_000}, asked)
    call.run()
    calls = {leaf.path: leaf.terms for leaf in call.outputs}
    assert calls["forward host warm"] == 7
    assert calls["backward host warm"] == 5  # its own choice
    assert calls["forward host cold"] == 1


def test_a_turn_goes_on_where_the_one_before_ended(clock):
    call = case(clock, {"paddle.pretended": 40_000, "gradients": 90_000}, job("paddle.pretended"))
    for _ in range(3):
        call.run()
    # With cold caches it is timed once: that decides nothing, and lanes shall soon swap places.
    assert set(samples(call)) == {"forward host warm", "backward host warm"}
    assert call.framework.notes.count("seed") == 1  # the case was made once
    assert call.native.filled == [0, 1, "upstream"]
    assert len({id(note[1][0]) for note in call.framework.notes if note != "seed"}) == 1


def test_inputs_are_put_out_of_the_caches_before_a_cold_call(clock):
    call = case(clock, {"paddle.pretended": 40_000, "gradients": 90_000}, job("paddle.pretended", tensors=1))
    call.run()
    sizes = [(count, code) for _, count, code in call.native.evicted]
    # The input and the upstream gradient, once for the call and once for the gradients.
    assert sizes == [(3, CODES["float32"])] * 4
    assert len({pointer for pointer, _, _ in call.native.evicted}) == 2


def test_a_call_in_place_gets_a_copy_each_time(clock, monkeypatch):
    api = "paddle.pretended_"
    entry = Api(api, lambda x, y: x, ("x", "y"), changes="x")
    monkeypatch.setitem(REGISTRY, api, entry)
    call = case(clock, {api: 40_000}, job(api, backward=False))
    call.run()
    given = [args for note, args in (note for note in call.framework.notes if note != "seed")]
    assert len({id(x) for x, _ in given}) == len(given)  # none meets what another has left
    assert len({id(y) for _, y in given}) == 1


def test_without_gradients_there_is_no_backward(clock):
    call = case(clock, {"paddle.pretended": 40_000}, job("paddle.pretended", backward=False))
    call.run()
    assert set(samples(call)) == {"forward host warm", "forward host cold"}


def test_interrupted_samples_are_left_out_while_others_are_enough(clock, monkeypatch):
    call = case(clock, {"paddle.pretended": 200_000, "gradients": 1}, job("paddle.pretended", backward=False))
    call.run()
    # Every third sample is interrupted, and takes longer.
    state = {"asked": 0}

    def switches():
        state["asked"] += 1
        return state["asked"] // 6

    plain = call.function

    def disturbed(*args, **kwargs):
        if state["asked"] % 6 == 5:
            clock.now += 9_000_000
        return plain(*args, **kwargs)

    monkeypatch.setattr(timed, "_switches", switches)
    call.function = disturbed
    call.run()
    assert set(samples(call)["forward host warm"]) == {200_000}


def test_where_all_are_interrupted_all_are_kept(clock, monkeypatch):
    counter = iter(range(10**6))
    monkeypatch.setattr(timed, "_switches", lambda: next(counter))
    call = case(clock, {"paddle.pretended": 200_000}, job("paddle.pretended", backward=False))
    call.run()
    assert len(samples(call)["forward host warm"]) == 5


def test_a_call_that_takes_long_is_made_no_more_often_than_it_must(clock):
    call = case(clock, {"paddle.pretended": 60_000_000}, job("paddle.pretended", backward=False))
    call.run()
    # Once for what only the first call does; the next one is the sample, whatever the caches held.
    assert len([note for note in call.framework.notes if note != "seed"]) == 2
    assert samples(call) == {"forward host cold": [60_000_000], "forward host warm": [60_000_000]}
    call.run()
    assert len([note for note in call.framework.notes if note != "seed"]) == 3
    assert samples(call) == {"forward host warm": [60_000_000]}


def test_where_the_memory_of_a_lane_lies_is_drawn(clock):
    def places():
        call = case(clock, {"paddle.pretended": 40_000}, job("paddle.pretended", backward=False))
        call.run()
        return [len(block) for block in call.before]

    assert places() != places()


def test_on_a_device_its_own_clock_is_read_as_well(clock):
    call = case(clock, {"paddle.pretended": 10_000}, job("paddle.pretended", backward=False))
    begun = []

    class Stopwatch:
        def wait(self):
            pass

        def mark(self):
            begun.append(clock.now)
            return clock.now

        def between(self, begin, end):
            return 3.0 * (end - begin)  # the device is slower than the host that hands over

    call.framework.stopwatch = Stopwatch
    call.run()
    found = samples(call)
    assert set(found["forward device warm"]) == {30_000}
    assert set(found["forward host warm"]) == {10_000}
    assert found["forward device cold"] == [30_000]
    assert not call.native.evicted  # that is for the host's caches
    assert timed.NO_TENSOR in call.native.filled


class Behind:
    """A device with a clock of its own: what it is given it begins when it is free, and not before."""

    def __init__(self, clock, call, of_call, of_flush):
        self.clock, self.free = clock, 0
        function, fill = call.framework.resolve, call.native.fill

        def resolve(api):
            plain = function(api)

            def with_work(*args, **kwargs):
                result = plain(*args, **kwargs)
                self._works(of_call)
                return result

            return with_work

        def flush(index, *rest):
            fill(index, *rest)
            self._works(of_flush if index == timed.NO_TENSOR else 0)

        call.framework.resolve, call.native.fill = resolve, flush
        call.framework.stopwatch = lambda: self

    def _works(self, nanoseconds):
        self.free = max(self.free, self.clock.now) + nanoseconds

    def wait(self):
        self.clock.now = max(self.clock.now, self.free)

    def mark(self):
        self._works(0)
        return self.free

    def between(self, begin, end):
        return float(end - begin)


@pytest.mark.parametrize("host", [3_000, 40_000, 400_000])
def test_a_device_never_waits_for_the_host_where_it_is_timed(clock, host):
    call = case(clock, {"paddle.pretended": host}, job("paddle.pretended", backward=False))
    Behind(clock, call, of_call=2_000, of_flush=70_000)
    call.run()
    assert set(samples(call)["forward device warm"]) == {2_000}
