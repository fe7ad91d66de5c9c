"""A framework whose calls take a known share longer: `ASSAY_SLOWER=0.05`, and not at all without it.

On a CPU the calls of a sample, and its gradients, are followed by a loop that does nothing for this share
of the time that they took together: behind each call of a microsecond a loop would overlap with what the
processor has still to do for it. With 0 the same code runs and waits for nothing, so that two lanes differ
by the share alone. On a GPU a kernel that does nothing follows, for this share of what the first calls of the
case took there (PyTorch; no kernel is shorter than about 2 µs, so calls of less than 40 µs become slower
by more).
"""

import os
import time
from collections.abc import Callable
from typing import Any

SHARE = float(os.environ.get("ASSAY_SLOWER", "0"))
CLOCK = time.perf_counter_ns
MEASURED = 3  # calls of a case


class Slower:
    def __init__(self, framework: Any) -> None:
        self.framework = framework
        self.cycles_in_ns = 0.0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        watch = getattr(self.framework, "stopwatch", lambda: None)()
        return self.on_device(function, watch) if watch is not None else function

    def on_device(self, function: Callable[..., Any], watch: Any) -> Callable[..., Any]:
        cuda = self.framework.torch.cuda
        if not self.cycles_in_ns:
            self.sleep_ns(cuda, watch, 10_000)
            self.cycles_in_ns = 10_000_000 / self.sleep_ns(cuda, watch, 10_000_000)
        times: list[float] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(times) < MEASURED:
                begin = watch.mark()
                result = function(*args, **kwargs)
                end = watch.mark()
                watch.wait()
                times.append(watch.between(begin, end))
                return result
            result = function(*args, **kwargs)
            if SHARE:
                cuda._sleep(int(min(times) * SHARE * self.cycles_in_ns))
            return result

        return call

    def sleep_ns(self, cuda: Any, watch: Any, cycles: int) -> float:
        begin = watch.mark()
        cuda._sleep(cycles)
        end = watch.mark()
        watch.wait()
        return watch.between(begin, end)


def slower_on_host(run: Callable[[Any, list[Any]], None]) -> Callable[[Any, list[Any]], None]:
    """The calls that `run` makes for a sample, and the loop."""

    def run_and_wait(self: Any, prepared: list[Any]) -> None:
        began = CLOCK()
        run(self, prepared)
        now = CLOCK()
        until = now + (now - began) * SHARE
        while now < until:
            now = CLOCK()

    return lambda self, prepared: (run if self.device else run_and_wait)(self, prepared)


def create() -> Any:
    from assay.frameworks import paddle_framework, torch_framework

    of = {"paddle": paddle_framework, "torch": torch_framework}[os.environ["ASSAY_FRAMEWORK"]]
    framework = of.create()
    # Only now: what it imports sees whether PyTorch is there.
    from assay import timed

    slower = Slower(framework)
    gradients = framework.gradients
    # What a lane times is what it calls, a framework's own function or one of the tables.
    ready = timed.Timed._ready

    def slower_ready(self: Any, function: Any) -> Any:
        function, args, kwargs = ready(self, function)
        framework.gradients = slower(gradients)
        return slower(function), args, kwargs

    timed.Timed._ready = slower_ready
    timed.Timed._run_forward = slower_on_host(timed.Timed._run_forward)
    timed.Timed._run_backward = slower_on_host(timed.Timed._run_backward)
    return framework
