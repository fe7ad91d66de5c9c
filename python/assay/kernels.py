"""What a lane has had no kernel for, so that it does not make large inputs for nothing."""

from collections import Counter

from assay.call import is_large
from assay.regimes import specs_in
from assay.spec import FLOATING
from assay.wire import NO_KERNEL, Job

Kind = tuple[str, tuple[str, ...]]  # an API, and the dtypes of the tensors that it is given


class Kernels:
    """Of the cases that a lane has run under their usual values. It says what to try first, and decides
    nothing."""

    def __init__(self) -> None:
        self.missing: dict[Kind, bool] = {}  # in the last case of a kind
        self.runs: Counter[str] = Counter()  # of any API with tensors of this dtype
        self.misses: Counter[str] = Counter()

    def in_doubt(self, job: Job) -> bool:
        """Whether the case has large inputs and, as far as is known, no kernel. Of a kind that has not been
        seen the dtypes tell: what most APIs lack this one is likely to lack."""
        specs = list(specs_in((*job.args, *job.kwargs.values())))
        if not any(is_large(spec) and spec.dtype in FLOATING for spec in specs):
            return False
        dtypes = tuple(spec.dtype for spec in specs)
        known = self.missing.get((job.api, dtypes))
        if known is not None:
            return known
        return any(2 * self.misses[dtype] > self.runs[dtype] for dtype in dtypes)

    def learn(self, job: Job, status: int, phase: str) -> None:
        dtypes = tuple(spec.dtype for spec in specs_in((*job.args, *job.kwargs.values())))
        missing = status == NO_KERNEL and phase != "backward"
        self.missing[job.api, dtypes] = missing
        for dtype in set(dtypes):
            self.runs[dtype] += 1
            self.misses[dtype] += missing
