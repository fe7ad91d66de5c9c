"""The whole case a second time, with its inputs made anew: whether a framework agrees with itself."""

from assay.execution import Plain


class Way(Plain):
    runs = 2
