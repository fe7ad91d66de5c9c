#pragma once

// Cases as Python objects: tensors become TensorSpec, dtypes DtypeName (both of assay.spec), all
// else plain Python. Nothing is evaluated.

#include "case/case.h"
#include "native/python.h"

namespace assay::native {

struct PythonTypes {
  Ref tensor_spec;
  Ref dtype_name;
  Ref fields;  // of a settings table
};

struct PythonCall {
  Ref args;    // tuple
  Ref kwargs;  // dict
};

// Members are null on a failure, with Python's error set.
PythonCall to_python(const Case& parsed, const PythonTypes& types);

}  // namespace assay::native
