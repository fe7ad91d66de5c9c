"""The clock of a lane's GPU, by events of the stream that its framework uses."""

from collections.abc import Callable
from typing import Any


class Stopwatch:
    """`event` makes an event that keeps the time, `wait` waits until the GPU has done all it was given."""

    def __init__(self, event: Callable[..., Any], wait: Callable[[], None]) -> None:
        self.event = event
        self.wait = wait

    def mark(self) -> Any:
        event = self.event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Nanoseconds; both events have passed."""
        return begin.elapsed_time(end) * 1e6  # of ms
