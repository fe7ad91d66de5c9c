"""The call repeatedly under a clock: its time is the result (assay.timed)."""

from assay.execution import Plain


class Way(Plain):
    """Measures time instead of results."""

    timed = True
