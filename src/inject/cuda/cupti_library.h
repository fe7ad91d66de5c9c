#pragma once

// libcupti as the process has it. It is loaded and not linked: a framework brings its own
// (PyTorch's and Paddle's wheels, of CUDA 12 or 13), and two copies in one process do not work.
// Functions and what is read of their records have not changed since CUDA 12.

#include <cupti.h>

#include <string>

namespace assay::inject {

struct CuptiLibrary {
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityFlushPeriod) flush_period = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;

  // Loads all of it, the copy that the process has already first. Else says what is missing.
  std::string load();
};

}  // namespace assay::inject
