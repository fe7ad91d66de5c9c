#include "native/filling.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/system_memory.h"
#include "fill/filled.h"
#include "native/dlpack.h"
#include "native/module_state.h"

namespace assay::native {
namespace {

// The record does not repeat more values than these (16 MB); `assay repro` then says so.
constexpr std::size_t kMostListed = std::size_t{1} << 21;
// Inputs of this size are made once for all lanes. A lane fills smaller ones in its own warm
// memory, which is faster than copying blocks and mapping their pages.
constexpr std::uint64_t kShareFrom = std::uint64_t{1} << 26;
constexpr std::uint64_t kMostShared = std::uint64_t{1} << 38;
// From this size of inputs on, the lane first checks that there is memory for them.
constexpr std::uint64_t kAskFrom = std::uint64_t{1} << 30;
// Lanes give back the memory that they keep within a second; it is at most this much.
constexpr std::uint64_t kMostKept = std::uint64_t{10} << 30;
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kBetweenLooks{50};
// A smaller tensor on a device gets the host's values by a copy, which the driver stages. That is
// faster than one launch to fill it and another to sum it up.
constexpr std::size_t kMadeOnHost = std::size_t{16} << 10;
// An input has the place of its number, an upstream gradient the last place.
constexpr std::size_t kUpstreamPlace = SharedInputs::kPlaces - 1;

// Keeps how an input was filled, and the checksum of its bytes, computed now if it is not known
// yet.
Status record_filling(ModuleState& state, const Target& target, const FillRule& rule,
                      std::vector<double> literal = {}, std::optional<std::uint64_t> known = {}) {
  if (target.tensor >= state.fillings.size()) return {};
  std::uint64_t& sum = state.checksums.emplace_back(known.value_or(KeptReplies::kToCome));
  state.fillings[target.tensor] = {rule, std::move(literal), &sum};
  const std::span<std::byte> memory = target.memory();
  // Tensors of an earlier run of the case no longer exist.
  std::erase_if(state.filled,
                [&](const FilledTensor& filled) { return filled.tensor == target.tensor; });
  state.filled.push_back({target.tensor, memory});
  if (known) return {};
  return state.device->checksum(memory.data(), memory.size(), &sum);
}

FillKey key_of(const ModuleState& state, std::uint32_t tensor) {
  FillKey key = state.key;
  key.tensor = tensor;
  return key;
}

// Fills a tensor; returns the checksum of its bytes if it is known already.
Result<std::optional<std::uint64_t>> fill_by_rule(ModuleState& state, const Target& target,
                                                  const FillRule& rule, std::uint32_t tensor) {
  const FillKey key = key_of(state, tensor);
  const std::span<std::byte> memory = target.memory();
  if (state.device->is_host() || memory.size() > kMadeOnHost) {
    ASSAY_CHECK(state.device->fill(rule, key, target.type(), memory.data(),
                                   static_cast<std::uint64_t>(target.count), 0));
    return std::optional<std::uint64_t>();
  }
  alignas(64) std::array<std::byte, kMadeOnHost> room;
  const std::span<std::byte> values = std::span(room).first(memory.size());
  const std::uint64_t sum = fill_and_sum(rule, key, target.type(), values);
  ASSAY_CHECK(state.device->copy(memory.data(), values.data(), values.size()));
  return std::optional(sum);
}

// Reads the arguments (kind, low, high, extent); false once a Python error is set.
bool complete(FillRule& rule, int kind, long long extent, DType dtype) {
  if (kind > static_cast<int>(kLastFillKind)) {
    raise(Error{"fill: unknown kind"});
    return false;
  }
  rule.kind = static_cast<FillKind>(kind);
  rule.extent = extent;
  if (kind < 0) rule = default_rule(dtype);
  return true;
}

bool is_worth_sharing(std::uint64_t elements, DType dtype) {
  return elements >= kShareFrom / size_of(dtype);
}

// Offset in the file of shared inputs behind the first `tensors` of the case; nullopt: no room. It
// depends on the case's text alone, so all lanes compute the same.
std::optional<std::uint64_t> shared_room(const Case& parsed, std::size_t tensors) {
  std::uint64_t offset = SharedInputs::kFirst;
  for (std::size_t i = 0; i < std::min(tensors, kUpstreamPlace); ++i) {
    const DType dtype = parsed.tensor(i).dtype;
    const std::uint64_t elements = parsed.tensor(i).elements();
    if (!is_worth_sharing(elements, dtype)) continue;
    const std::uint64_t element = size_of(dtype);
    const std::uint64_t room =
        elements <= kMostShared / element ? SharedInputs::room_for(elements * element) : 0;
    if (room == 0) return std::nullopt;
    offset += room;
  }
  return offset;
}

bool can_share(const ModuleState& state, DType dtype) {
  return state.inputs && state.device->is_host() && known_to_dlpack(dtype);
}

// Checks that the machine has memory for `what` of the case, this many bytes of the shared file;
// sets a Python error if not. The file grows while it is filled, so the kernel would otherwise kill
// processes. Bytes that the file has already are available. Memory that malloc keeps is given back
// first; the slot's other lane does the same.
bool lacks_memory(const ModuleState& state, const char* what, std::uint64_t wanted) {
  if (wanted < kAskFrom) return false;
  std::uint64_t room = 0;
  for (int looks = 0; looks < kLooks; ++looks) {
    const auto memory = system_memory();
    if (!memory) return false;
    room = memory->available + state.inputs->held();
    if (wanted <= room) return false;
    if (wanted > room + kMostKept) break;
    looks == 0 ? (void)::malloc_trim(0) : std::this_thread::sleep_for(kBetweenLooks);
  }
  PyErr_Format(PyExc_MemoryError, "%s take %llu MiB, and there are %llu MiB of memory", what,
               static_cast<unsigned long long>(wanted >> 20),
               static_cast<unsigned long long>(room >> 20));
  return true;
}

// The extents of a tensor; nullopt once a Python error is set.
std::optional<std::vector<std::int64_t>> shape_from(PyObject* sequence) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(PySequence_Size(sequence)));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Ref extent(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(axis)));
    shape[axis] = extent ? PyLong_AsLongLong(extent.get()) : -1;
    if (PyErr_Occurred() != nullptr) return std::nullopt;
  }
  return shape;
}

// (capsule, pointer) of a tensor in the file.
PyObject* handed_out(SharedTensor made, DType dtype, std::vector<std::int64_t> shape) {
  const std::uint64_t pointer = reinterpret_cast<std::uintptr_t>(made.memory().data());
  const Ref capsule = to_capsule(std::move(made), dtype, std::move(shape));
  return capsule ? Py_BuildValue("OK", capsule.get(), pointer) : nullptr;
}

}  // namespace

PyObject* fill_shared(PyObject* module, PyObject* arguments) {
  Target target;
  PyObject* extents = nullptr;
  int kind = -1;
  FillRule rule;
  long long extent = 0;
  if (!PyArg_ParseTuple(arguments, "IO!i|iddL", &target.tensor, &PyTuple_Type, &extents,
                        &target.dtype, &kind, &rule.low, &rule.high, &extent)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_shared: bad dtype"});
  const DType dtype = target.type();
  if (!complete(rule, kind, extent, dtype)) return nullptr;
  std::optional<std::vector<std::int64_t>> shape = shape_from(extents);
  if (!shape) return nullptr;
  ModuleState& state = state_of(module);
  if (!can_share(state, dtype)) return none();
  if (target.tensor >= std::min(state.parsed.tensor_count(), kUpstreamPlace)) return none();
  const TensorSpec spec = state.parsed.tensor(target.tensor);
  const std::uint64_t count = spec.elements();
  const auto offset = shared_room(state.parsed, target.tensor);
  if (!offset || !is_worth_sharing(count, dtype) || spec.dtype != dtype ||
      !std::ranges::equal(spec.shape, *shape)) {
    return none();
  }
  if (lacks_memory(state, "the inputs", state.parsed.total_bytes())) return nullptr;
  auto made =
      state.inputs->make(rule, key_of(state, target.tensor), dtype, count, *offset, target.tensor);
  if (!made) return none();
  target.pointer = reinterpret_cast<std::uintptr_t>(made->memory().data());
  target.count = static_cast<Py_ssize_t>(count);
  const Status kept = record_filling(state, target, rule, {}, made->checksum());
  if (!kept) return raise(kept.error());
  return handed_out(std::move(*made), dtype, std::move(*shape));
}

PyObject* fill_upstream_shared(PyObject* module, PyObject* arguments) {
  Target target;
  PyObject* extents = nullptr;
  unsigned long long inputs = 0;
  if (!PyArg_ParseTuple(arguments, "IO!iK", &target.tensor, &PyTuple_Type, &extents, &target.dtype,
                        &inputs)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_upstream_shared: bad dtype"});
  const DType dtype = target.type();
  std::optional<std::vector<std::int64_t>> shape = shape_from(extents);
  if (!shape) return nullptr;
  ModuleState& state = state_of(module);
  std::uint64_t count = 1;
  for (const std::int64_t extent : *shape) count *= static_cast<std::uint64_t>(extent);
  if (!can_share(state, dtype) || !is_worth_sharing(count, dtype)) return none();
  const auto offset = shared_room(state.parsed, state.parsed.tensor_count());
  if (!offset) return none();
  const std::uint64_t wanted = *offset + count * size_of(dtype);
  if (lacks_memory(state, "inputs and upstream gradient", wanted)) return nullptr;
  auto made = state.inputs->make(upstream_rule(dtype, count, inputs),
                                 key_of(state, kUpstream + target.tensor), dtype, count, *offset,
                                 kUpstreamPlace);
  if (!made) return none();
  return handed_out(std::move(*made), dtype, std::move(*shape));
}

PyObject* fill_tensor(PyObject* module, PyObject* arguments) {
  Target target;
  int kind = -1;
  FillRule rule;
  long long extent = 0;
  if (!PyArg_ParseTuple(arguments, "IKni|iddL", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &kind, &rule.low, &rule.high, &extent)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill: bad dtype or count"});
  if (!complete(rule, kind, extent, target.type())) return nullptr;
  ModuleState& state = state_of(module);
  if (state.device->is_host()) {
    const FillKey key = key_of(state, target.tensor);
    const std::uint64_t sum = fill_and_sum(rule, key, target.type(), target.memory());
    return none_if(record_filling(state, target, rule, {}, sum));
  }
  const auto sum = fill_by_rule(state, target, rule, target.tensor);
  return sum ? none_if(record_filling(state, target, rule, {}, *sum)) : raise(sum.error());
}

PyObject* fill_literal(PyObject* module, PyObject* arguments) {
  Target target;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(arguments, "IKniy#", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &bytes, &size)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_literal: bad dtype or count"});
  std::vector<double> values(static_cast<std::size_t>(target.count));
  if (static_cast<std::size_t>(size) != values.size() * sizeof(double)) {
    return raise(Error{"fill_literal: the number of values differs from the number of elements"});
  }
  std::memcpy(values.data(), bytes, static_cast<std::size_t>(size));
  ModuleState& state = state_of(module);
  std::vector<std::byte> listed(target.memory().size());
  fill_values(values, target.type(), listed);
  if (values.size() > kMostListed) values.clear();
  Status filled = state.device->copy(target.memory().data(), listed.data(), listed.size());
  if (filled) filled = record_filling(state, target, {}, std::move(values));
  return none_if(filled);
}

PyObject* fill_upstream(PyObject* module, PyObject* arguments) {
  Target target;
  unsigned long long inputs = 0;
  if (!PyArg_ParseTuple(arguments, "IKniK", &target.tensor, &target.pointer, &target.count,
                        &target.dtype, &inputs)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"fill_upstream: bad dtype or count"});
  const auto count = static_cast<std::uint64_t>(target.count);
  const FillRule rule = upstream_rule(target.type(), count, inputs);
  const auto filled = fill_by_rule(state_of(module), target, rule, kUpstream + target.tensor);
  return filled ? none() : raise(filled.error());
}

}  // namespace assay::native
