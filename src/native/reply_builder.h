#pragma once

// Builds a wire::Reply from the arguments of reply() of assay.lane.

#include <cstdint>
#include <span>
#include <vector>

#include "fill/fill.h"
#include "native/memory.h"
#include "native/python.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay::native {

// How a tensor of the case was filled; `literal` replaces the rule if it has values.
struct Filling {
  FillRule rule;
  std::vector<double> literal;
  const std::uint64_t* checksum = nullptr;  // of the bytes; a device may still compute it
};

struct ReplyParts {
  std::uint32_t index = 0;
  wire::Status status = wire::Status::ok;
  std::string_view phase;
  std::string_view error;
  PyObject* outputs = nullptr;    // sequence of assay.wire.Leaf
  PyObject* gradients = nullptr;  // sequence of assay.wire.Leaf
  bool differentiable = false;
  PyObject* nanoseconds = nullptr;  // tuple of int
  PyObject* evaluations = nullptr;  // sequence of (outputs, gradients)
  PyObject* overwritten = nullptr;  // sequence of names
  std::span<const Filling> inputs;
  MemoryWatch::Growth growth;
  bool left_running = false;
  bool self_only = false;
  bool changed_state = false;
  std::uint64_t device_kb = 0;
  std::span<const ReplyParts> again;  // further runs of the case
};

// False on failure, with Python's error set. The message is in `builder` afterwards.
bool build_reply(const ReplyParts& parts, flatbuffers::FlatBufferBuilder& builder);

}  // namespace assay::native
