"""Constants that Python and C++ share, generated from C++: do not edit.

tests/slot/shared_constants_test.cc writes this file, and fails where it is not up to date.
"""

# DType of src/case/dtype.h: the position is the code on the wire.
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "uint16",
    "uint32",
    "uint64",
)

# Status, LeafKind, Equality and Stage of src/wire/messages.fbs.
OK = 0
RAISED = 1
NO_KERNEL = 2
OUT_OF_MEMORY = 3
UNSUPPORTED = 4
SKIPPED = 5
REFUSED = 6
CRASHED = 7
TIMED_OUT = 8
ABSENT = 9

LEAF_TENSOR = 0
LEAF_INTEGER = 1
LEAF_FLOATING = 2
LEAF_COMPLEX = 3
LEAF_BOOLEAN = 4
LEAF_TEXT = 5
LEAF_NONE = 6
LEAF_DISTRIBUTION = 7
LEAF_DTYPE = 8
LEAF_OPAQUE = 9

EQUALITY_CODES = {
    "value": 0,
    "sign": 1,
    "sorted": 2,
    "shape": 3,
    "bits": 4,
}

STAGES = (
    "build",
    "forward",
    "copy",
    "backward",
)

# Value regimes, the usual one first (src/wire/settings.h).
REGIMES = (
    "usual",
    "wide",
    "nan",
    "infinity",
    "bulk",
    "exact",
    "layout",
    "constant",
)

# FillKind and Signs of src/fill/rule.h.
UNIFORM = 0
INTEGERS = 1
DISTINCT = 2
INCREASING = 3
SYMMETRIC = 4
POSITIVE_DEFINITE = 5
BOXES = 6
CONSTANT = 7
MAGNITUDES = 8
WITH_NAN = 9
WITH_INFINITY = 10
HALVES = 11
ENDS = 12
CORNERS = 13
ROWS = 14

POSITIVE = 1
BOTH = 2
SHARE = 3

# src/wire/shared.h
MOST_ELEMENTS = 131072
SPARES = "ASSAY_SPARES"
SPARES_AFTER_A_FAULT = "ASSAY_SPARES_AFTER_A_FAULT"
OWN_MPS = "ASSAY_OWN_MPS"
EXECUTIONS = "ASSAY_EXECUTIONS"
SANITIZER = "sanitizer"

FAULT_EXIT = 86  # src/device/device.h
UPSTREAM = 4.0  # src/fill/fill.h
PROTOCOL = 1  # src/lane/message.h
FEW_TERMS = 64  # src/measure/bar.h
