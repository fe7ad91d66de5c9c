"""The Python part of assay: lanes and API tables, which run in a framework's own Python.

A traced program uses assay.timeline through this module: ``with assay.job("forward", micro_batch=3):``.
"""

__version__ = "0.1.0"

_OF_TIMELINE = ("job", "job_schedule_profiler_range", "start", "step", "steps", "stop")


def __getattr__(name):
    if name not in _OF_TIMELINE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import timeline

    return getattr(timeline, name)
