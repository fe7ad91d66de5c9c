#pragma once

// The process's libcupti. It is loaded, not linked: frameworks bring their own copy (PyTorch's and
// Paddle's wheels, of CUDA 12 or 13), and two copies in one process do not work. The functions and
// record fields used here have not changed since CUDA 12.

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

  // Loads all functions, from the copy that the process already has if there is one. Returns "", or
  // what is missing.
  std::string load();
};

}  // namespace assay::inject
