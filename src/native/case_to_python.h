#pragma once

// Cases as Python objects: tensors become TensorSpec, dtypes DtypeName, devices PlaceName (all of
// assay.spec), all else plain Python. Nothing is evaluated.

#include "case/case.h"
#include "native/python.h"

namespace assay::native {

struct PythonTypes {
  Ref tensor_spec;
  Ref dtype_name;
  Ref place_name;
  Ref fields;  // of a settings table
};

struct PythonCall {
  Ref args;    // tuple
  Ref kwargs;  // dict
};

// Members are null on a failure, with Python's error set.
PythonCall call_of(const Case& parsed, const PythonTypes& types);
// What makes the layer that is called; only for a case that constructs one.
PythonCall construction_of(const Case& parsed, const PythonTypes& types);

}  // namespace assay::native
