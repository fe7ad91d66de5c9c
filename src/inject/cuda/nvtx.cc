// NVTX loads this library if NVTX_INJECTION64_PATH names it. Push and pop become ranges. Needs no
// GPU.

#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <string>

#include "inject/recorder.h"

namespace assay::inject {
namespace {

void push(const char* message) {
  Recorder* const recorder = Recorder::instance();
  if (recorder == nullptr) return;
  recorder->begin_job(message == nullptr ? "" : message);
}

int range_push(const char* message) {
  push(message);
  return 0;
}

int range_push_ex(const nvtxEventAttributes_t* attributes) {
  const bool text = attributes != nullptr && attributes->messageType == NVTX_MESSAGE_TYPE_ASCII;
  push(text ? attributes->message.ascii : nullptr);
  return 0;
}

int range_pop() {
  if (Recorder* recorder = Recorder::instance()) recorder->end_range();
  return 0;
}

// The table has pointers to the slots of NVTX's functions.
template <typename Function>
void set_slot(NvtxFunctionTable table, unsigned size, NvtxCallbackIdCore id, Function* function) {
  if (static_cast<unsigned>(id) >= size || table[id] == nullptr) return;
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace
}  // namespace assay::inject

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  using namespace assay::inject;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) {
    return 0;
  }
  set_slot(table, size, NVTX_CBID_CORE_RangePushA, range_push);
  set_slot(table, size, NVTX_CBID_CORE_RangePushEx, range_push_ex);
  set_slot(table, size, NVTX_CBID_CORE_RangePop, range_pop);
  return 1;
}
