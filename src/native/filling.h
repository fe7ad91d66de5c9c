#pragma once

// The functions of assay_native that give a lane's tensors their values.

#include "native/python.h"

namespace assay::native {

// fill(tensor, pointer, count, dtype[, kind, low, high, extent]): by rule, or by the dtype's
// default.
PyObject* fill_tensor(PyObject* module, PyObject* arguments);

// fill_literal(tensor, pointer, count, dtype, values): these values, one for each element; the
// bytes of an array of doubles.
PyObject* fill_literal(PyObject* module, PyObject* arguments);

// fill_upstream(output, pointer, count, dtype, reach): the upstream gradient of an output, evenly
// spread over [-reach, reach).
PyObject* fill_upstream(PyObject* module, PyObject* arguments);

}  // namespace assay::native
