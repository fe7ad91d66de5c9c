#pragma once

// The functions of assay_native that fill a lane's tensors.

#include "native/python.h"

namespace assay::native {

// fill(tensor, pointer, count, dtype[, kind, low, high, extent]): fills by the given rule, or by
// the default rule of the dtype.
PyObject* fill_tensor(PyObject* module, PyObject* arguments);

// fill_shared(tensor, shape, dtype[, kind, low, high, extent]) -> (capsule, pointer): like fill(),
// in memory that the slot's lanes share; the framework takes it by DLPack. None without such
// memory, or if the tensor is too small for it. Raises MemoryError if the case's inputs need more
// memory than the machine has.
PyObject* fill_shared(PyObject* module, PyObject* arguments);

// fill_upstream_shared(output, shape, dtype, inputs) -> (capsule, pointer): like fill_upstream(),
// in shared memory; None as above. Only one output of a case can use it.
PyObject* fill_upstream_shared(PyObject* module, PyObject* arguments);

// fill_literal(tensor, pointer, count, dtype, values): copies `values`, the bytes of an array of
// doubles, one for each element.
PyObject* fill_literal(PyObject* module, PyObject* arguments);

// fill_upstream(output, pointer, count, dtype, inputs): fills the upstream gradient of an output by
// upstream_rule(). `inputs`: elements of the largest input.
PyObject* fill_upstream(PyObject* module, PyObject* arguments);

}  // namespace assay::native
