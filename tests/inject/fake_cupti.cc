// A libcupti without a GPU. Driver "calls" are made by name and return as the activity records that
// CUPTI would give.

#include <cupti.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

CUpti_CallbackFunc callback = nullptr;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
std::array<bool, CUPTI_DRIVER_TRACE_CBID_SIZE> watched{};
bool kernels_wanted = false;
std::vector<CUpti_ActivityKernel10> pending;

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

// Adds a kernel with the next correlation id at begin..end on the device and stream.
FAKE void fake_launch(std::uint32_t correlation, std::uint32_t device, std::uint64_t begin,
                      std::uint64_t end, const char* name);

FAKE CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc function, void*) {
  if (std::getenv("FAKE_CUPTI_TAKEN")) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  callback = function;
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                     CUpti_CallbackDomain, CUpti_CallbackId id) {
  watched.at(id) = enable != 0;
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t id, const char** name) {
  *name = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel ? "cuLaunchKernel" : "cuCtxCreate";
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) kernels_wanted = true;
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) kernels_wanted = false;
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) {
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc first,
                                                CUpti_BuffersCallbackCompleteFunc second) {
  request = first;
  complete = second;
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityFlushPeriod(std::uint32_t) { return CUPTI_SUCCESS; }
FAKE CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t records = 0;
  request(&buffer, &size, &records);
  complete(nullptr, 0, buffer, size, pending.size() * sizeof pending[0]);
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityGetNextRecord(std::uint8_t*, std::size_t, CUpti_Activity** record) {
  static std::size_t next = 0;
  if (next == pending.size()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(&pending[next++]);
  return CUPTI_SUCCESS;
}
FAKE CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 5;
  return CUPTI_SUCCESS;
}

void fake_launch(std::uint32_t correlation, std::uint32_t device, std::uint64_t begin,
                 std::uint64_t end, const char* name) {
  if (watched[CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel]) {
    CUpti_CallbackData data{};
    data.callbackSite = CUPTI_API_ENTER;
    data.correlationId = correlation;
    callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    data.callbackSite = CUPTI_API_EXIT;
    callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
  }
  if (!kernels_wanted) return;
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.correlationId = correlation;
  kernel.deviceId = device;
  kernel.streamId = 7;
  kernel.start = begin;
  kernel.end = end;
  kernel.name = name;
  pending.push_back(kernel);
}
