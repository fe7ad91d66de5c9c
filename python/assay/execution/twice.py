"""The whole case twice, with new inputs: whether a framework agrees with itself."""

from assay.execution import Plain


class Way(Plain):
    """Runs every case twice."""

    runs = 2
