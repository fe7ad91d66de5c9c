"""PyTorch some of whose functions run a kernel with a fault: `ASSAY_FRAMEWORK_MODULE=planted_framework`.

    torch.atan   writes behind the end of its memory      (memcheck)
    torch.sinh   threads write one cell without waiting   (racecheck)
    torch.cosh   reads what nobody has written            (initcheck)

The results are right all the same: without a sanitizer nobody sees anything. PyTorch 2.9 or newer compiles
the kernels, when the first case needs one.
"""

from functools import cache
from typing import Any

from assay.frameworks import torch_framework

THREADS = 64
FAULTS = {"atan": "behind_the_end", "sinh": "race", "cosh": "unwritten"}
SOURCE = """
extern "C" __global__ void behind_the_end(float *cells, int count) { cells[count + threadIdx.x] = 1; }
extern "C" __global__ void race(float *cells, int count) {
  __shared__ volatile float cell;  // or a compiler knows what is in it
  cell = threadIdx.x;
  cells[threadIdx.x] = cell;
}
extern "C" __global__ void unwritten(float *cells, int count) { cells[count - 1] += cells[threadIdx.x]; }
"""


class Planted(torch_framework.TorchFramework):
    def __init__(self) -> None:
        super().__init__()
        for name in FAULTS:
            setattr(self.torch, name, self.with_fault(name, getattr(self.torch, name)))

    @cache  # noqa: B019 (one object in a process)
    def kernel(self, name: str) -> Any:
        return self.torch.cuda._compile_kernel(SOURCE, name)

    def with_fault(self, name: str, right: Any) -> Any:
        def call(x: Any) -> Any:
            cells = self.torch.empty(THREADS, dtype=self.torch.float32, device=x.device)
            self.kernel(FAULTS[name])(grid=(1, 1, 1), block=(THREADS, 1, 1), args=[cells, THREADS])
            return right(x)

        return call


def create() -> Planted:
    return Planted()
