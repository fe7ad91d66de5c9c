"""What a lane and its slot say to each other, as Python sees it: codes, jobs, leaves.

The messages themselves are made and read by the native module; src/wire/messages.fbs describes them.
"""

from typing import Any, NamedTuple

from assay.spec import COMPLEX, FLOATING

# In the order of DType in src/case/dtype.h; the position is the code on the wire.
DTYPES = (
    "bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 uint16 uint32 uint64"
).split()
CODES = {name: code for code, name in enumerate(DTYPES)}
DIFFERENTIABLE = (FLOATING | COMPLEX) - {"float8_e4m3fn", "float8_e5m2"}

# Status, LeafKind and Equality of src/wire/messages.fbs.
OK, RAISED, NO_KERNEL, OUT_OF_MEMORY, UNSUPPORTED, SKIPPED, REFUSED = range(7)
# The phase of a case of whose kernels compute-sanitizer has something to say (kSanitizerPhase in judge.cc).
SANITIZER = "sanitizer"
TENSOR, INTEGER, FLOAT, COMPLEX_NUMBER, BOOLEAN, TEXT, NONE, LAW, DTYPE, OPAQUE = range(10)
EQUALITY_CODES = {"value": 0, "sign": 1, "sorted": 2, "shape": 3, "bits": 4}


class Leaf(NamedTuple):
    """One leaf of a result, as the native module puts it on the wire."""

    path: str
    kind: int
    dtype: int = 0
    shape: tuple[int, ...] = ()
    offset: int = 0
    value: Any = None
    equality: int = 0
    parameters: tuple[Any, ...] = ()
    lent: bool | bytes = False  # `offset` is an address in this process, or these bytes say where it is
    terms: float = 1.0  # that a reduction adds up for one element
    scale_floor: float = 0.0  # see src/measure/bar.h
    unit_floor: float = 0.0


class Fields(dict[str, Any]):
    """The fields of a table of src/wire/settings.fbs, as attributes."""

    def __init__(self, *fields: Any, **named: Any) -> None:
        super().__init__(*fields, **named)
        self.__dict__.update(self)  # found at once, where __getattr__ would be asked last: 0.4 µs each time


class Job(NamedTuple):
    """One case, parsed by the native module: tensors are TensorSpec, dtypes DtypeName."""

    api: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: int
    seed: int  # of the framework's own generator
    settings: Fields  # CaseSettings of src/wire/settings.fbs
    lane: Fields  # LaneSpec, likewise
    construction: tuple[tuple[Any, ...], dict[str, Any]] | None  # what makes the case's layer, if it has one
    id: int
    values: str  # the value regime
    perturbations: int  # evaluations of the reference with perturbed inputs; 0: without the truth either
    mutant: str  # the fault to plant in the lane under test; empty but under `assay mutate`
    try_unfilled: bool = False  # a kernel may be missing: call first with large inputs unfilled
    calls: tuple[int, ...] = ()  # of a case that is timed: in each sample of its parts, where that is known


class Stop(Exception):
    """Ends a case with a status of its own instead of a result."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refuse(message: str) -> Any:
    raise Stop(REFUSED, message)


def count_of(shape: Any) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
