"""The marks of `assay timeline record --watch`, with a clock that the test moves, and one real run."""

import importlib.util
import subprocess
import sys
import threading

import pytest
from tree import ASSAY, ROOT

SPEC = importlib.util.spec_from_file_location("stages", ROOT / "python/assay/timeline/stages.py")
stages_module = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stages_module)
MS = 1_000_000


class Clock:
    """Nanoseconds; each reading takes one."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 1
        return self.now

    def passes(self, milliseconds):
        self.now += int(milliseconds * MS)


class Loss:
    """A tensor of a framework: its hooks are called when backward begins."""

    requires_grad = True

    def __init__(self):
        self.hooks = []

    def register_hook(self, hook):
        self.hooks.append(hook)
        return self

    def remove(self):
        self.hooks.clear()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stages(clock, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    file = stages_module.StageFile(tmp_path, lambda: clock.now / 1e9)
    return stages_module.Stages(file, clock)


def measured(tmp_path):
    """The lines of the file, without its header."""
    head, *lines = (tmp_path / "rank3.stages").read_text().splitlines()
    assert head.startswith('assay-stages 2 {"rank": 3, ')
    return [[int(each) for each in line.split()] for line in lines]


def train_step(stages, clock, *, parts=(20, 30, 50, 60, 10), queue=True):
    """One step, as PyTorch calls the hooks."""
    data, forward, backward, wait, optimizer = parts
    loss, callbacks = Loss(), []

    def run(tensors):
        for hook in tensors.hooks:
            hook(None)
        clock.passes(backward)
        for callback in callbacks:
            callback()
        clock.passes(wait)

    stages.spends(clock.passes, stages_module.DATA)(data)
    clock.passes(forward)
    stages.backward(run, callbacks.append if queue else lambda _: None)(loss)
    assert not loss.hooks
    clock.passes(optimizer)
    stages.stepped(stages)


def test_the_stages_of_a_step(stages, clock, tmp_path):
    for _ in range(3):
        train_step(stages, clock)
    stages.file.flush()
    times = [20_000, 30_000, 50_000, 60_000, 10_000, 20_000]
    assert measured(tmp_path) == [[1, *times], [2, *times]]


def test_collectives_are_waits_of_the_thread_of_the_step(stages, clock, tmp_path):
    reduce = stages.spends(clock.passes, stages_module.WAIT)
    train_step(stages, clock)
    stages.spends(reduce, stages_module.WAIT)(5)  # one that calls another
    other = threading.Thread(target=reduce, args=(7,))  # of a checkpoint, say
    other.start()
    other.join()
    train_step(stages, clock, parts=(0, 10, 10, 0, 10))
    stages.file.flush()
    assert measured(tmp_path) == [[1, 0, 17_000, 10_000, 5_000, 10_000, 0]]


def test_without_callbacks_backward_is_work(stages, clock, tmp_path):
    train_step(stages, clock)
    train_step(stages, clock, queue=False)
    stages.file.flush()
    assert measured(tmp_path) == [[1, 20_000, 30_000, 110_000, 0, 10_000, 20_000]]


def test_errors_of_the_program_pass_through(stages, clock, tmp_path):
    train_step(stages, clock)
    for stage in (stages_module.DATA, stages_module.WAIT):
        with pytest.raises(StopIteration):
            stages.spends(lambda: next(iter(())), stage)()
    with pytest.raises(ZeroDivisionError):
        stages.backward(lambda _: 1 // 0, None)(Loss())
    train_step(stages, clock)
    stages.file.flush()
    assert len(measured(tmp_path)) == 1


def test_a_step_ends_with_the_first_optimizer(stages, clock, tmp_path):
    other = object()
    for _ in range(3):
        train_step(stages, clock)
        stages.stepped(other)
    stages.file.flush()
    assert len(measured(tmp_path)) == 2
    for _ in range(70):  # from now on the other one is in use
        stages.stepped(other)
    assert stages.leader == id(other)


def test_own_loops_mark_their_steps_and_stages(stages, clock, tmp_path):
    for number in range(10, 14):
        stages.assay_step(number)
        stages.stepped(stages)  # does not count any more
        stages.assay_job_begin(b"data", -1)
        clock.passes(20)
        stages.assay_job_end()
        clock.passes(30)
        stages.assay_job_begin(b"wait", -1)
        clock.passes(5)
        stages.assay_job_end()
    stages.file.flush()
    assert measured(tmp_path) == [[number, 20_000, 30_000, 0, 5_000, 0, 20_000] for number in (10, 11, 12)]


@pytest.mark.parametrize(("rate", "most"), [(0.1, 0.03), (1, 0.2), (10, 1.0), (1000, 1.0)])
def test_an_hour_takes_less_than_a_megabyte(stages, clock, tmp_path, rate, most):
    hours = min(1, 10 / rate)
    parts = [each * 1000 / rate for each in (0.1, 0.3, 0.3, 0.2, 0.1)]
    while clock.now < hours * 3600e9:
        train_step(stages, clock, parts=parts)
    stages.file.flush()
    assert (tmp_path / "rank3.stages").stat().st_size <= most * 1e6 * hours
    assert len(measured(tmp_path)) >= min(3600 * rate, 8500) * hours - 2


def test_each_part_of_an_epoch_is_measured(stages, clock, tmp_path):
    for number in range(1, 20_000):
        first = number % 32 == 0  # of an epoch
        train_step(stages, clock, parts=(200 if first else 1, 1, 1, 1, 1))
    stages.file.flush()
    late = [line for line in measured(tmp_path)[20:] if line[1] == 200_000]
    assert stages.every >= 16 and 0 < len(late) < len(measured(tmp_path)) / 8


@pytest.mark.parametrize(("reading", "least", "most"), [(0.03, 2, 4), (3, 2, 4), (0.001, 1, 1)])
def test_marks_that_are_slow_are_taken_less_often(clock, tmp_path, reading, least, most):
    file = stages_module.StageFile(tmp_path)
    slow = stages_module.Stages(file, lambda: clock.passes(reading) or clock.now)
    for _ in range(200):
        train_step(slow, clock, parts=(0, 100, 100, 0, 0))
    # A measured step takes some marks of 0.05 ms (longer ones wait for a GPU); 0.1% of a step are 0.2 ms.
    assert least <= slow.every <= most


class Event:
    """Of a GPU, which takes `slowness` times as long as its host."""

    done, slowness = True, 1

    def __init__(self, now):
        self.time = now

    def query(self):
        return Event.done

    def elapsed_time(self, other):
        if self.time > 1000 * MS:
            raise RuntimeError("events of two devices")
        return (other.time - self.time) / MS * Event.slowness


def test_a_gpu_is_read_when_it_has_come_so_far(stages, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(Event, "done", False)
    stages._find_cuda = lambda: None
    stages._event = lambda: Event(clock.now)
    for _ in range(4):
        train_step(stages, clock)
    assert len(stages.over) == 3
    Event.done = True
    train_step(stages, clock)
    stages.file.flush()
    *lines, last = (tmp_path / "rank3.stages").read_text().splitlines()[1:]
    assert lines == [f"{number} 20000 30000 50000 60000 10000 20000" for number in (1, 2, 3)]
    assert last == "4 20000 30000 50000 60000 10000 20000 host"  # it had nothing to do
    clock.passes(1000)
    for _ in range(4):
        train_step(stages, clock)  # without these steps, and without an error of the program
    stages.file.flush()
    assert len((tmp_path / "rank3.stages").read_text().splitlines()) == 5


@pytest.mark.parametrize(("slowness", "word"), [(1, " host"), (1.05, " host"), (2, "")])
def test_a_gpu_that_takes_longer_than_its_host_does_not_wait_for_it(
    stages, clock, tmp_path, monkeypatch, slowness, word
):
    monkeypatch.setattr(Event, "slowness", slowness)
    stages._find_cuda = lambda: None
    stages._event = lambda: Event(clock.now)
    for _ in range(3):
        train_step(stages, clock)
    stages.file.flush()
    lines = (tmp_path / "rank3.stages").read_text().splitlines()[1:]
    assert [line.endswith(f" 20000{word}") for line in lines] == [True, True]


TRAIN = """
import os, sys, time, torch
from torch import distributed, nn
torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
net = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
ended = torch.zeros(1)
while not ended:
    time.sleep(0.01 + 0.03 * rank)
    net(torch.ones(4, 64)).sum().backward()
    optimizer.step()
    ended += os.path.exists(sys.argv[1])
    distributed.all_reduce(ended)
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_the_slow_rank_is_named_while_the_training_runs(tmp_path):
    python = ROOT / ".venv/torch/bin/python"
    if not ASSAY.exists() or not python.exists():
        pytest.skip("assay is not built, or there is no PyTorch")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/rank7.stages").write_text("assay-stages 2 {}\n")  # of an earlier run
    launch = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    watched = [ASSAY, "timeline", "record", "--watch", "--out", tmp_path / "out", "--"]
    run = subprocess.Popen(
        [*watched, *launch, tmp_path / "train.py", tmp_path / "end"], stderr=subprocess.PIPE, text=True
    )
    named = next((line for line in run.stderr if "rank 1 is slow since step" in line), "")
    assert "most of the excess in forward; the others take" in named
    (tmp_path / "end").touch()
    rest = run.stderr.read()
    assert run.wait() == 0, rest
    assert "\n1 " in rest
    assert "\n7 " not in rest
    later = subprocess.run([ASSAY, "timeline", "watch", tmp_path / "out"], capture_output=True, text=True)
    assert later.returncode == 0, later.stderr
    assert named in later.stdout
