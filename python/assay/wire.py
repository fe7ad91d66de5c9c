"""The messages between a lane and its slot as Python objects: jobs, leaves, codes.

The native module reads and writes the messages, which src/wire/messages.fbs describes.
"""

from typing import Any, NamedTuple

from assay.shared import DTYPES, REFUSED, SKIPPED, UNSUPPORTED  # noqa: F401
from assay.spec import COMPLEX, FLOATING

CODES = {name: code for code, name in enumerate(DTYPES)}
DIFFERENTIABLE = (FLOATING | COMPLEX) - {"float8_e4m3fn", "float8_e5m2"}

MOST_TEXT = 1 << 16  # characters of an error's message that are searched


class Leaf(NamedTuple):
    """One leaf of a result, as the native module sends it."""

    path: str
    kind: int
    dtype: int = 0
    shape: tuple[int, ...] = ()
    offset: int = 0
    value: Any = None
    equality: int = 0
    parameters: tuple[Any, ...] = ()
    lent: bool | bytes = False  # True: `offset` is an address in this process; bytes: opens it on a device
    terms: float = 1.0  # terms that a reduction adds up for one element
    scale_floor: float = 0.0  # see src/measure/bar.h
    unit_floor: float = 0.0


class Fields(dict[str, Any]):
    """The fields of a table of src/wire/settings.fbs, as attributes."""

    def __init__(self, *fields: Any, **named: Any) -> None:
        super().__init__(*fields, **named)
        self.__dict__.update(self)  # faster than __getattr__, which takes 0.4 µs each time


class Job(NamedTuple):
    """One case, parsed by the native module: tensors are TensorSpec, dtypes DtypeName."""

    api: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: int
    seed: int  # of the framework's random generator
    settings: Fields  # CaseSettings of src/wire/settings.fbs
    lane: Fields  # LaneSpec of the same file
    construction: tuple[tuple[Any, ...], dict[str, Any]] | None  # arguments that make the case's layer
    id: int
    values: str  # the value regime
    perturbations: int  # evaluations of the reference with perturbed inputs; 0: without the truth either
    mutant: str  # fault to plant in the test lane; empty outside `assay mutate`
    try_unfilled: bool = False  # a kernel may be missing: call first with large inputs unfilled
    calls: tuple[int, ...] = ()  # calls in a timed sample of each part; empty: the lane chooses


class Stop(Exception):
    """Ends a case with a status instead of a result."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refuse(message: str) -> Any:
    """Raises Stop with the status REFUSED and this message."""
    raise Stop(REFUSED, message)


def text_of(error: BaseException) -> str:
    """The message of an error, also of one that cannot tell it; begin and end of a long one."""
    try:
        text = str(error)
    except BaseException as broken:
        return f"its message cannot be read: {type(broken).__name__}"
    half = MOST_TEXT // 2
    return text if len(text) <= MOST_TEXT else f"{text[:half]} … {text[-half:]}"


def count_of(shape: Any) -> int:
    """The number of elements of a tensor with this shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count
