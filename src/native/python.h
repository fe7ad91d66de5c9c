#pragma once

// The part of CPython's limited API (3.10) that the lane's module needs, with explicit ownership.

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::native {

struct DropReference {
  void operator()(PyObject* object) const { Py_XDECREF(object); }
};
// An owned reference; null after a failed call, with Python's error set.
using Ref = std::unique_ptr<PyObject, DropReference>;

inline Ref borrowed(PyObject* object) {
  Py_XINCREF(object);
  return Ref(object);
}

inline Ref to_python(std::string_view text) {
  return Ref(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

inline Ref to_python(const std::string& text) { return to_python(std::string_view(text)); }
inline Ref to_python(bool value) { return Ref(PyBool_FromLong(value ? 1 : 0)); }
inline Ref to_python(std::int64_t value) { return Ref(PyLong_FromLongLong(value)); }
inline Ref to_python(std::uint64_t value) { return Ref(PyLong_FromUnsignedLongLong(value)); }
inline Ref to_python(double value) { return Ref(PyFloat_FromDouble(value)); }
inline Ref to_python(std::span<const std::int64_t> values) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; tuple && i < values.size(); ++i) {
    PyObject* const number = PyLong_FromLongLong(values[i]);
    if (number == nullptr) return nullptr;
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), number);  // takes the reference
  }
  return tuple;
}

// Empty on failure, with Python's error set. The view ends with the object.
inline std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(size)};
}

inline std::nullptr_t raise(const Error& error) {
  PyErr_SetString(PyExc_RuntimeError, error.message.c_str());
  return nullptr;
}

}  // namespace assay::native
