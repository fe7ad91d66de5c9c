#include "native/handing_over.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/device.h"
#include "native/module_state.h"

namespace assay::native {
namespace {

// Reads the arguments (pointer, count, dtype[, on_device]) of `function`; false once a Python error
// is set.
bool read_result(PyObject* module, PyObject* arguments, const char* function, Target& target,
                 int& on_device) {
  if (!PyArg_ParseTuple(arguments, "Kni|p", &target.pointer, &target.count, &target.dtype,
                        &on_device)) {
    return false;
  }
  if (!target.valid()) {
    raise(Error{std::string(function) + ": bad dtype or count"});
  } else if (!state_of(module).channel) {
    raise(Error{"no channel is open"});
  } else {
    return true;
  }
  return false;
}

// Lends a result on the device: returns the bytes with which another process opens it.
PyObject* lend_on_device(ModuleState& state, std::span<std::byte> memory) {
  const auto shared = state.device->share(memory.data(), memory.size());
  if (!shared) return Py_NewRef(Py_False);  // the result is copied instead
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&*shared), sizeof *shared);
}

// Pinned and pageable memory take two copies: CUDA refuses one copy over both.
Status copy_to_arena(ModuleState& state, std::uint64_t offset, std::span<const std::byte> from) {
  std::byte* const to = state.channel->arena().data() + offset;
  const std::uint64_t pinned =
      offset < kPinned ? std::min<std::uint64_t>(kPinned - offset, from.size()) : 0;
  if (pinned > 0) ASSAY_CHECK(state.device->copy(to, from.data(), pinned));
  if (pinned == from.size()) return {};
  return state.device->copy(to + pinned, from.data() + pinned, from.size() - pinned);
}

}  // namespace

PyObject* lend(PyObject* module, PyObject* arguments) {
  Target target;
  int on_device = 0;
  if (!read_result(module, arguments, "lend", target, on_device)) return nullptr;
  ModuleState& state = state_of(module);
  const std::span<std::byte> memory = target.memory();
  if (memory.size() < kLendFrom || !state.channel->batch().lend() ||
      (on_device != 0) == state.device->is_host()) {
    return Py_NewRef(Py_False);
  }
  if (on_device != 0) return lend_on_device(state, memory);
  const bool lent =
      std::none_of(state.filled.begin(), state.filled.end(), [&](const FilledTensor& filled) {
        const std::span<std::byte> input = filled.memory;
        return memory.data() >= input.data() && memory.data() < input.data() + input.size();
      });
  if (lent) state.lent_bytes += memory.size();
  return Py_NewRef(lent ? Py_True : Py_False);
}

PyObject* hand_over(PyObject* module, PyObject* arguments) {
  Target target;
  int on_device = 0;
  if (!read_result(module, arguments, "hand_over", target, on_device)) return nullptr;
  ModuleState& state = state_of(module);
  const std::span<std::byte> memory = target.memory();
  const auto offset = state.channel->reserve(memory.size());
  if (!offset) return raise(offset.error());
  const Status copied = on_device != 0 ? copy_to_arena(state, *offset, memory)
                                       : host_device().copy(state.channel->arena().data() + *offset,
                                                            memory.data(), memory.size());
  return copied ? PyLong_FromUnsignedLongLong(*offset) : raise(copied.error());
}

}  // namespace assay::native
