"""The clock of a lane's GPU: events in the stream that its framework uses."""

from collections.abc import Callable
from typing import Any


class Stopwatch:
    """`event` makes an event with a time stamp. `wait` waits until the GPU has finished its work."""

    def __init__(self, event: Callable[..., Any], wait: Callable[[], None]) -> None:
        self.event = event
        self.wait = wait

    def mark(self) -> Any:
        """A new event, recorded in the stream."""
        event = self.event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Nanoseconds between two completed events."""
        return begin.elapsed_time(end) * 1e6  # of ms
