#include "native/case_to_python.h"

#include <string>

namespace assay::native {
namespace {

Ref convert(const Value& value, const PythonTypes& types);

Ref convert_tensor(const Value& value, const PythonTypes& types) {
  const TensorSpec spec = value.tensor();
  const Ref shape = to_python(spec.shape);
  if (!shape) return nullptr;
  const Ref dtype = to_python(name(spec.dtype));
  const Ref ordinal(PyLong_FromSize_t(value.tensor_ordinal()));
  if (!dtype || !ordinal) return nullptr;
  if (spec.strides.empty() && spec.place.empty()) {
    return Ref(PyObject_CallFunctionObjArgs(types.tensor_spec.get(), shape.get(), dtype.get(),
                                            ordinal.get(), nullptr));
  }
  const Ref strides = to_python(spec.strides);
  const Ref place = to_python(spec.place);
  if (!strides || !place) return nullptr;
  return Ref(PyObject_CallFunctionObjArgs(types.tensor_spec.get(), shape.get(), dtype.get(),
                                          ordinal.get(), strides.get(), place.get(), nullptr));
}

// A name as an object of `type`.
Ref convert_name(std::string_view text, const Ref& type) {
  const Ref name = to_python(text);
  if (!name) return nullptr;
  return Ref(PyObject_CallFunctionObjArgs(type.get(), name.get(), nullptr));
}

Ref convert_list(const Value& value, const PythonTypes& types) {
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  for (const Value child : value.children()) {
    const Ref item = convert(child, types);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list;
}

Ref convert_tuple(const Value& value, const PythonTypes& types) {
  const Ref list = convert_list(value, types);
  return list ? Ref(PyList_AsTuple(list.get())) : nullptr;
}

Ref convert_slice(const Value& value, const PythonTypes& types) {
  const Ref parts = convert_list(value, types);
  if (!parts) return nullptr;
  return Ref(PySlice_New(PyList_GetItem(parts.get(), 0), PyList_GetItem(parts.get(), 1),
                         PyList_GetItem(parts.get(), 2)));
}

Ref convert(const Value& value, const PythonTypes& types) {
  switch (value.kind()) {
    case ValueKind::none:
      return borrowed(Py_None);
    case ValueKind::boolean:
      return borrowed(value.boolean() ? Py_True : Py_False);
    case ValueKind::integer:
      return Ref(PyLong_FromLongLong(value.integer()));
    case ValueKind::big_integer:
      return Ref(PyLong_FromString(std::string(value.text()).c_str(), nullptr, 10));
    case ValueKind::floating:
      return Ref(PyFloat_FromDouble(value.floating()));
    case ValueKind::complex:
      return Ref(PyComplex_FromDoubles(value.complex().real(), value.complex().imag()));
    case ValueKind::string:
      return to_python(value.text());
    case ValueKind::ellipsis:
      return borrowed(Py_Ellipsis);
    case ValueKind::tensor:
      return convert_tensor(value, types);
    case ValueKind::dtype:
      // Frameworks take type(int) and type(numpy.int64) as a name or as an object.
      return convert_name(name(value.dtype()), types.dtype_name);
    case ValueKind::list:
      return convert_list(value, types);
    case ValueKind::tuple:
      return convert_tuple(value, types);
    case ValueKind::slice:
      return convert_slice(value, types);
    case ValueKind::place:
      return convert_name(value.text(), types.place_name);
  }
  return nullptr;
}

PythonCall convert(const Case& parsed, std::size_t first, std::size_t last,
                   const PythonTypes& types) {
  const Ref positional(PyList_New(0));
  Ref kwargs(PyDict_New());
  if (!positional || !kwargs) return {};
  for (std::size_t i = first; i < last; ++i) {
    const Argument argument = parsed.argument(i);
    const Ref value = convert(argument.value, types);
    if (!value) return {};
    if (argument.keyword.empty()) {
      if (PyList_Append(positional.get(), value.get()) != 0) return {};
    } else {
      const Ref key = to_python(argument.keyword);
      if (!key || PyDict_SetItem(kwargs.get(), key.get(), value.get()) != 0) return {};
    }
  }
  return {Ref(PyList_AsTuple(positional.get())), std::move(kwargs)};
}

}  // namespace

PythonCall call_of(const Case& parsed, const PythonTypes& types) {
  return convert(parsed, parsed.construction_count(), parsed.argument_count(), types);
}

PythonCall construction_of(const Case& parsed, const PythonTypes& types) {
  return convert(parsed, 0, parsed.construction_count(), types);
}

}  // namespace assay::native
