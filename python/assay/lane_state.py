"""The global state of a lane's process and framework, which a case must leave as it was."""

import contextlib
import ctypes
import pathlib
from collections.abc import Callable
from typing import Any

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # reads it; sets it

_libm = ctypes.CDLL("libm.so.6")
ROUNDING: Setting = (_libm.fegetround, _libm.fesetround)


def threads_of(openmp: pathlib.Path) -> Callable[[], int]:
    """Reads the number of threads of an OpenMP runtime, which frameworks only set. It raises AttributeError
    if there is no such library."""
    library = ctypes.CDLL(str(openmp)) if openmp.exists() else None
    return lambda: library.omp_get_max_threads()


class LaneState:
    """The settings of a framework by name, and their right values: those of now. What this version of the
    framework cannot read is left out."""

    def __init__(self, settings: dict[str, Setting]) -> None:
        self._settings: list[tuple[str, Callable[[], Any], Callable[[Any], Any], Any]] = []
        for name, (read, write) in settings.items():
            with contextlib.suppress(AttributeError, TypeError):
                self._settings.append((name, read, write, read()))

    def learn(self) -> None:
        """The values of now are right: the lane itself has set them."""
        self._settings = [(name, read, write, read()) for name, read, write, _ in self._settings]

    def restore(self) -> list[str]:
        """Sets back what differs from the right values, and gives the names of these settings."""
        changed = [each for each in self._settings if each[1]() != each[3]]
        for _, _, write, right in changed:
            write(right)
        return [each[0] for each in changed]
