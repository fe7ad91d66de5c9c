"""The call again and again, with a clock: how long it takes instead of what it gives (assay.timed)."""

from assay.execution import Plain


class Way(Plain):
    timed = True
