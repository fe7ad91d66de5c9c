"""The APIs `paddle.fake.*` and their well-behaved references."""

import os
import signal
import time
from array import array

from assay.known_deviation import follows
from assay.registry import api
from assay.rules import Literal


class Clock:
    """Goes on as the calls say that they take, so that no verdict hangs on this machine."""

    now = 0

    def __call__(self):
        return self.now


CLOCK = Clock()


@api(
    *(
        f"paddle.fake.{name}"
        for name in "echo crash exit hang wrong raises raises_no_text gives_no_text gives_no_shape "
        "nonsense no_kernel out_of_memory needs_all_memory contaminated child hides_its_start hides_as_idle "
        "prevents_its_answer closes_its_channel exits_by_exception interrupts_itself "
        "changes_mode needs_mode "
        "wrong_in_graphs unsteady raises_the_second_time gpu_fault sanitized wrong_at_both_ends "
        "flawed_nan flawed_value flawed_raises flawed_at_times flawed_shape flawed_dies".split()
    )
)
def unchanged(x, tag=None):
    return x


@api("paddle.fake.many_numbers", "paddle.fake.many_numbers_one_wrong")
def many_numbers(x):
    return [list(range(1000 * i, 1000 * i + 1000)) for i in range(600)]


@api("paddle.fake.where", known_deviation=follows("it says where it is"))
def where(x):
    return "cpu"


@api("paddle.fake.mps")
def mps(x):
    return "apart"


@api("paddle.fake.many_parts")
def many_parts(x):
    return [str(i) for i in range(100_000)]


@api("paddle.fake.many_listed", x=lambda this: Literal(array("d", bytes(8 * this.size))))
def many_listed(x):
    return "seen"


VICTIM = "paddle.fake.victim", "paddle.fake.worsens"


@api("paddle.fake.slow", "paddle.fake.slow_and_wrong", "paddle.fake.poisons", "paddle.fake.poisoned", *VICTIM)
def slow(x, seconds):
    time.sleep(seconds)
    return x


@api("paddle.fake.takes")
def takes(x, mine, reference):
    CLOCK.now += 1000 * reference
    return x


@api("paddle.fake.takes_by_luck")
def takes_by_luck(x, notes):
    CLOCK.now += 1_000_000
    return x


@api("paddle.fake.dies_later")
def dies_later(x):
    CLOCK.now += 1_000_000
    return x


@api("paddle.fake.dies_idle")
def dies_idle(x, notes):
    while not os.path.exists(notes + ".dead"):
        time.sleep(0.001)
    return x


@api("paddle.fake.noted", "paddle.fake.no_kernel_noted")
def noted(x, notes):
    """Writes a line for each run of the reference."""
    with open(notes, "a") as file:
        file.write("run\n")
    return x


@api("paddle.fake.has_kernel")
def has_kernel(x, notes, has):
    return x


@api("paddle.fake.both_raise")
def both_raise(x):
    raise TypeError("the reference neither")


@api("paddle.fake.reference_crash")
def reference_crash(x):
    os.kill(os.getpid(), signal.SIGABRT)
