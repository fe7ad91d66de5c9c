#pragma once

// The state of the module assay_native, and helpers that its functions share.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "case/case.h"
#include "device/device.h"
#include "device/shared_inputs.h"
#include "fill/fill.h"
#include "native/case_to_python.h"
#include "native/channel.h"
#include "native/kept_replies.h"
#include "native/memory.h"
#include "native/python.h"
#include "native/reply_builder.h"
#include "native/stage_clock.h"

namespace assay::native {

// A tensor of the case and the memory of its values.
struct FilledTensor {
  std::uint32_t tensor = 0;
  std::span<std::byte> memory;
};

struct ModuleState {
  std::optional<Channel> channel;
  StageClock stages;
  FillKey key;
  Case parsed;
  PythonTypes types;
  std::vector<Filling> fillings;
  std::vector<FilledTensor> filled;
  std::uint64_t lent_bytes = 0;
  flatbuffers::FlatBufferBuilder builder;
  MemoryWatch memory;
  bool owes_answer = false;   // the running job has no reply yet
  bool has_children = false;  // processes that ran after the previous case
  Ref settings;               // of the batch
  Ref lane;                   // its LaneSpec
  // The device of the tensors. Before a channel is open, and in lanes on the CPU, it is the host.
  std::shared_ptr<Device> device{std::shared_ptr<Device>(), &host_device()};
  std::deque<std::uint64_t> checksums;  // of kept replies, and of the running job
  KeptReplies kept;
  std::optional<SharedInputs> inputs;  // shared by the slot's lanes
  std::int64_t marked_ns = 0;          // start of the last wait of a reply for the device
  std::uint64_t batches = 0;           // started so far
};

inline ModuleState& state_of(PyObject* module) {
  return **static_cast<ModuleState**>(PyModule_GetState(module));
}

inline std::span<std::byte> memory_at(unsigned long long pointer, std::size_t bytes) {
  // Frameworks report addresses as integers.
  return {reinterpret_cast<std::byte*>(pointer), bytes};  // NOLINT(performance-no-int-to-ptr)
}

inline PyObject* none() { return Py_NewRef(Py_None); }
inline PyObject* none_if(const Status& done) { return done ? none() : raise(done.error()); }

struct Target {
  unsigned int tensor = 0;
  unsigned long long pointer = 0;
  Py_ssize_t count = 0;
  int dtype = 0;

  DType type() const { return static_cast<DType>(dtype); }
  std::span<std::byte> memory() const {
    return memory_at(pointer, static_cast<std::size_t>(count) * size_of(type()));
  }
  bool valid() const {
    return dtype >= 0 && static_cast<std::size_t>(dtype) < kDTypes.size() && count >= 0;
  }
};

}  // namespace assay::native
