#pragma once

// The functions of assay_native that give a lane's tensors their values.

#include "native/python.h"

namespace assay::native {

// fill(tensor, pointer, count, dtype[, kind, low, high, extent]): by rule, or by the dtype's
// default.
PyObject* fill_tensor(PyObject* module, PyObject* arguments);

// fill_shared(tensor, shape, dtype[, kind, low, high, extent]) -> (capsule, pointer): as fill(), of
// a tensor of the case that lies where the slot's other lanes have it as well, for a framework to
// take by DLPack. None where there is no such memory, or a tensor is not worth it. MemoryError
// where the case's inputs are more than the machine has memory for.
PyObject* fill_shared(PyObject* module, PyObject* arguments);

// fill_upstream_shared(output, shape, dtype, reach) -> (capsule, pointer): as fill_upstream(), in
// memory that the slot's other lanes have as well; None as above. One output of a case has it.
PyObject* fill_upstream_shared(PyObject* module, PyObject* arguments);

// fill_literal(tensor, pointer, count, dtype, values): these values, one for each element; the
// bytes of an array of doubles.
PyObject* fill_literal(PyObject* module, PyObject* arguments);

// fill_upstream(output, pointer, count, dtype, reach): the upstream gradient of an output, evenly
// spread over [-reach, reach).
PyObject* fill_upstream(PyObject* module, PyObject* arguments);

}  // namespace assay::native
