#include "native/reply_builder.h"

#include <algorithm>
#include <string>

#include "case/dtype.h"

namespace assay::native {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// Fields of assay.wire.Leaf, by position.
enum LeafField : Py_ssize_t {
  path,
  kind,
  dtype,
  shape,
  offset,
  value,
  equality,
  parameters,
  lent,
  terms,
  scale_floor,
  unit_floor
};

Ref item(PyObject* sequence, Py_ssize_t index) { return Ref(PySequence_GetItem(sequence, index)); }

std::uint64_t number_at(PyObject* sequence, Py_ssize_t index) {
  const Ref number = item(sequence, index);
  return number ? PyLong_AsUnsignedLongLong(number.get()) : 0;
}

double real_at(PyObject* sequence, Py_ssize_t index) {
  const Ref number = item(sequence, index);
  return number ? PyFloat_AsDouble(number.get()) : 0;
}

// Empty if `sequence` is no sequence, with Python's error set.
template <typename Number>
std::vector<Number> numbers_of(PyObject* sequence) {
  const Py_ssize_t count = std::max<Py_ssize_t>(PySequence_Size(sequence), 0);
  std::vector<Number> numbers(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = static_cast<Number>(number_at(sequence, i));
  }
  return numbers;
}

std::uint64_t product(const std::vector<std::int64_t>& extents) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : extents) count *= static_cast<std::uint64_t>(extent);
  return count;
}

// The results of `make` for each entry; stops once a Python error is set.
template <typename Built, typename Make>
Offset<flatbuffers::Vector<Offset<Built>>> build_each(PyObject* sequence,
                                                      FlatBufferBuilder& builder, Make make) {
  std::vector<Offset<Built>> built;
  const Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count && PyErr_Occurred() == nullptr; ++i) {
    const Ref entry = item(sequence, i);
    const Offset<Built> made = entry ? make(entry.get()) : Offset<Built>();
    if (!made.IsNull()) built.push_back(made);
  }
  return builder.CreateVector(built);
}

// [(dtype, offset, count) or float, …]
Offset<flatbuffers::Vector<Offset<wire::Parameter>>> build_parameters(PyObject* sequence,
                                                                      FlatBufferBuilder& builder) {
  return build_each<wire::Parameter>(sequence, builder, [&](PyObject* entry) {
    if (PyFloat_Check(entry)) return wire::CreateParameter(builder, PyFloat_AsDouble(entry));
    const auto code = static_cast<std::uint8_t>(number_at(entry, 0));
    const std::uint64_t bytes = number_at(entry, 2) * size_of(static_cast<DType>(code));
    return wire::CreateParameter(builder, 0, code, number_at(entry, 1), bytes, true);
  });
}

struct Scalar {
  double number = 0;
  double imaginary = 0;
  std::int64_t integer = 0;
  std::string text;
};

Scalar read_scalar(wire::LeafKind leaf_kind, PyObject* object) {
  Scalar scalar;
  switch (leaf_kind) {
    case wire::LeafKind::floating:
      scalar.number = PyFloat_AsDouble(object);
      break;
    case wire::LeafKind::complex:
      scalar.number = PyComplex_RealAsDouble(object);
      scalar.imaginary = PyComplex_ImagAsDouble(object);
      break;
    case wire::LeafKind::boolean:
      scalar.integer = object == Py_True ? 1 : 0;
      break;
    default:
      if (object != Py_None) scalar.text = text_of(object);
  }
  return scalar;
}

// The location of a result that is lent on a device.
Offset<flatbuffers::Vector<std::uint8_t>> build_shared(PyObject* lent, FlatBufferBuilder& builder) {
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(lent) == 0 || PyBytes_AsStringAndSize(lent, &bytes, &size) != 0) return 0;
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes),
                              static_cast<std::size_t>(size));
}

Offset<wire::Leaf> build_leaf(PyObject* leaf, FlatBufferBuilder& builder) {
  const Ref path_object = item(leaf, path);
  const Ref shape_object = item(leaf, shape);
  const Ref value_object = item(leaf, value);
  const Ref parameter_objects = item(leaf, parameters);
  if (!path_object || !shape_object || !value_object || !parameter_objects) return {};

  const auto leaf_kind = static_cast<wire::LeafKind>(number_at(leaf, kind));
  const auto code = static_cast<std::uint8_t>(number_at(leaf, dtype));
  const auto extents = numbers_of<std::int64_t>(shape_object.get());
  const bool in_arena = leaf_kind == wire::LeafKind::tensor;
  const std::uint64_t bytes = in_arena ? product(extents) * size_of(static_cast<DType>(code)) : 0;
  const Scalar scalar = read_scalar(leaf_kind, value_object.get());

  const std::string_view path_text = text_of(path_object.get());
  const auto path_offset = builder.CreateString(path_text.data(), path_text.size());
  const auto shape_offset = builder.CreateVector(extents);
  const auto text_offset = builder.CreateString(scalar.text);
  const auto parameter_offset = build_parameters(parameter_objects.get(), builder);
  const Ref lent_object = item(leaf, lent);
  if (!lent_object) return {};
  const auto shared = build_shared(lent_object.get(), builder);
  return wire::CreateLeaf(builder, path_offset, leaf_kind, code, shape_offset,
                          number_at(leaf, offset), bytes, scalar.number, scalar.imaginary,
                          scalar.integer, text_offset, parameter_offset,
                          static_cast<wire::Equality>(number_at(leaf, equality)),
                          PyObject_IsTrue(lent_object.get()) == 1, shared, real_at(leaf, terms),
                          real_at(leaf, scale_floor), real_at(leaf, unit_floor));
}

Offset<flatbuffers::Vector<Offset<wire::Leaf>>> build_leaves(PyObject* leaves,
                                                             FlatBufferBuilder& builder) {
  return build_each<wire::Leaf>(leaves, builder,
                                [&](PyObject* leaf) { return build_leaf(leaf, builder); });
}

Offset<flatbuffers::Vector<Offset<wire::Evaluation>>> build_evaluations(
    PyObject* evaluations, FlatBufferBuilder& builder) {
  return build_each<wire::Evaluation>(
      evaluations, builder, [&](PyObject* evaluation) -> Offset<wire::Evaluation> {
        const Ref outputs = item(evaluation, 0);
        const Ref gradients = item(evaluation, 1);
        if (!outputs || !gradients) return {};
        const auto output_vector = build_leaves(outputs.get(), builder);
        const auto gradient_vector = build_leaves(gradients.get(), builder);
        return wire::CreateEvaluation(builder, output_vector, gradient_vector);
      });
}

Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> build_names(PyObject* names,
                                                                     FlatBufferBuilder& builder) {
  return build_each<flatbuffers::String>(names, builder, [&](PyObject* name) {
    const std::string_view text = text_of(name);
    return builder.CreateString(text.data(), text.size());
  });
}

Offset<flatbuffers::Vector<Offset<wire::Filling>>> build_fillings(std::span<const Filling> fillings,
                                                                  FlatBufferBuilder& builder) {
  std::vector<Offset<wire::Filling>> built;
  for (const Filling& filling : fillings) {
    const auto literal = filling.literal.empty() ? Offset<flatbuffers::Vector<double>>()
                                                 : builder.CreateVector(filling.literal);
    built.push_back(wire::CreateFilling(
        builder, static_cast<std::uint8_t>(filling.rule.kind), filling.rule.low, filling.rule.high,
        filling.rule.extent, literal, filling.checksum != nullptr ? *filling.checksum : 0));
  }
  return builder.CreateVector(built);
}

Offset<wire::Reply> create_reply(const ReplyParts& parts, FlatBufferBuilder& builder) {
  std::vector<Offset<wire::Reply>> runs;
  for (const ReplyParts& run : parts.again) runs.push_back(create_reply(run, builder));
  const auto outputs = build_leaves(parts.outputs, builder);
  const auto gradients = build_leaves(parts.gradients, builder);
  const auto evaluations = build_evaluations(parts.evaluations, builder);
  const auto overwritten = build_names(parts.overwritten, builder);
  const auto nanoseconds = numbers_of<std::uint64_t>(parts.nanoseconds);
  if (PyErr_Occurred() != nullptr) return {};

  const auto phase = builder.CreateString(parts.phase.data(), parts.phase.size());
  const auto error = builder.CreateString(parts.error.data(), parts.error.size());
  const auto inputs = build_fillings(parts.inputs, builder);
  const auto times = builder.CreateVector(nanoseconds);
  const auto again = runs.empty() ? 0 : builder.CreateVector(runs);
  return wire::CreateReply(builder, wire::kMessageVersion, parts.index, parts.status, phase, error,
                           inputs, outputs, gradients, parts.differentiable, times,
                           parts.growth.resident_kb, parts.growth.grown_kb, again, evaluations,
                           overwritten, parts.left_running, parts.device_kb, parts.self_only,
                           parts.changed_state);
}

}  // namespace

bool build_reply(const ReplyParts& parts, FlatBufferBuilder& builder) {
  const Offset<wire::Reply> reply = create_reply(parts, builder);
  if (PyErr_Occurred() != nullptr) return false;
  builder.Finish(reply);
  return true;
}

}  // namespace assay::native
