#pragma once

// Turns cases into Python objects. Tensors become TensorSpec, dtypes DtypeName and devices
// PlaceName (all of assay.spec); other values become plain Python. Nothing is evaluated.

#include "case/case.h"
#include "native/python.h"

namespace assay::native {

struct PythonTypes {
  Ref tensor_spec;
  Ref dtype_name;
  Ref place_name;
  Ref fields;  // type of a settings table
};

struct PythonCall {
  Ref args;    // tuple
  Ref kwargs;  // dict
};

// Members are null on failure, with Python's error set.
PythonCall call_of(const Case& parsed, const PythonTypes& types);
// The arguments that make the layer; only for a case that constructs one.
PythonCall construction_of(const Case& parsed, const PythonTypes& types);

}  // namespace assay::native
