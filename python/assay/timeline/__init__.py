"""Names the jobs and steps of a program for ``assay timeline record``.

    for step in steps(range(1000)):
        with job("forward", micro_batch=3):
            ...

Outside a recording, both do nothing and cost a few hundred nanoseconds. Uses only the standard library.
"""

import contextlib
import ctypes
import os
import sys

__all__ = ["job", "job_schedule_profiler_range", "start", "step", "steps", "stop"]


def _load():
    if os.environ.get("ASSAY_RECORD_STAGES"):
        from . import stages

        return stages.stages()
    path = os.environ.get("ASSAY_RECORD_LIBRARY")
    if not path or not os.environ.get("ASSAY_RECORD_DIR"):
        return None
    library = ctypes.CDLL(path)
    library.assay_job_begin.argtypes = [ctypes.c_char_p, ctypes.c_int32]
    library.assay_job_begin.restype = None
    library.assay_step.argtypes = [ctypes.c_int64]
    library.assay_step.restype = None
    for name in ("assay_job_end", "assay_record_start", "assay_record_stop"):
        getattr(library, name).restype = None
    return library


_recorder = _load()


class job(contextlib.ContextDecorator):
    """Marks a block, or a decorated function, as one pipeline job."""

    def __init__(self, name, *, micro_batch=None):
        self._name = name.encode()
        self._micro_batch = -1 if micro_batch is None else micro_batch

    def __enter__(self):
        if _recorder is not None:
            _recorder.assay_job_begin(self._name, self._micro_batch)
        return self

    def __exit__(self, *exception):
        if _recorder is not None:
            _recorder.assay_job_end()
        return False


def step(number):
    """Begins step ``number`` and ends the previous step."""
    if _recorder is not None:
        _recorder.assay_step(number)


def steps(numbers):
    """Iterates over ``numbers``; each iteration is the step of that number."""
    for number in numbers:
        step(number)
        yield number


def start():
    """Begins recording after ``--paused`` or ``stop``."""
    if _recorder is not None:
        _recorder.assay_record_start()


def stop():
    """Pauses recording until ``start``."""
    if _recorder is not None:
        _recorder.assay_record_stop()


@contextlib.contextmanager
def job_schedule_profiler_range(iter_id, start, end, exit_after_prof=True):
    """Replaces Paddle's function of this name: records step ``iter_id`` if start <= iter_id < end.

    Yields whether the step is recorded. As with Paddle, the program exits after the last step of the range,
    unless ``exit_after_prof`` is false.
    """
    inside = start <= iter_id < end
    if _recorder is not None:
        (_recorder.assay_record_start if inside else _recorder.assay_record_stop)()
    step(iter_id)
    try:
        yield inside
    finally:
        if inside and iter_id == end - 1:
            stop()
            if exit_after_prof:
                sys.exit()
