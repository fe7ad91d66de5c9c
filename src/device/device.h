#pragma once

// A device, as lanes and slots know it: a place for tensors where they are filled, summed up,
// measured and shared with other processes. `cpu` is the host itself; `gpu:N` comes from a plug-in
// that is loaded at run time.
//
// What the functions below begin runs in the order of the calls, behind what the framework in the
// same process has begun; it is complete after synchronize(). measure() waits by itself. Addresses
// are of the device's memory, unless they are said to be the host's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "fill/fill.h"
#include "measure/measurement.h"

namespace assay {

// Memory of a device for another process to open; plain bytes, which travel as they are.
struct SharedMemory {
  std::array<std::uint8_t, 64> handle{};  // of the allocation
  std::uint64_t offset = 0;               // of the memory in it
  std::uint64_t allocation_bytes = 0;
  std::uint64_t allocation = 0;  // its number in its process, where none is given twice
};
static_assert(std::is_trivially_copyable_v<SharedMemory>);

// How a lane ends whose device has failed: no call of that process will ever work on it again.
inline constexpr int kDeviceFaultExit = 86;

// For the environment of processes that open GPUs: all count them as nvidia-smi does.
inline constexpr const char* kGpuOrder = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
// Likewise: a process has one queue to each GPU instead of eight. Contexts are made one after
// another, and so take half of the time, and again when they go (docs/gpu/2026-11-25-contexts.txt).
// What lies on several streams runs one after another then; results are the same.
inline constexpr const char* kGpuQueues = "CUDA_DEVICE_MAX_CONNECTIONS=1";

struct DeviceSpace {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

// An opened allocation of another process.
struct OpenedMemory {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;  // "cpu", "gpu:0"
  virtual bool is_host() const = 0;

  virtual Status fill(const FillRule& rule, const FillKey& key, DType dtype, void* out,
                      std::uint64_t count, std::uint64_t first_element) = 0;
  // checksum() of fill/fill.h; *result is written by the next synchronize(), at the latest.
  virtual Status checksum(const void* memory, std::uint64_t bytes, std::uint64_t* result) = 0;
  // Either side may be the host's. Host memory that was not pinned is copied at once.
  virtual Status copy(void* to, const void* from, std::uint64_t bytes) = 0;
  // Says as well whether the device still works: after a fault in any kernel of this process it
  // never does again.
  virtual Status synchronize() = 0;
  // What has begun until now shall be complete once reached() says so, which does not wait. A later
  // mark takes the place of an earlier one. Of work on other streams than the framework's usual one
  // only synchronize() knows.
  virtual Status mark() = 0;
  virtual Result<bool> reached() = 0;

  virtual Result<Measurement> measure(DType dtype, const void* left, const void* right,
                                      std::uint64_t count, Tolerance under) = 0;

  virtual Result<void*> allocate(std::uint64_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual Result<DeviceSpace> space() = 0;
  // Keeps host memory in place, so that the device copies to it by itself, and undoes that.
  virtual Status pin(void* host, std::uint64_t bytes) = 0;
  virtual void unpin(void* host) = 0;

  // For another process; what cannot be shared where it lies is copied first. Valid until
  // end_sharing() or the end of the memory, whichever comes first.
  virtual Result<SharedMemory> share(const void* memory, std::uint64_t bytes) = 0;
  virtual void end_sharing() = 0;
  virtual Result<OpenedMemory> open(const SharedMemory& shared) = 0;
  virtual void close(std::byte* base) = 0;
};

Device& host_device();

// "cpu", or "gpu:N" by the plug-in in that file. An error is one line that says what to do.
Result<std::shared_ptr<Device>> open_device(std::string_view name);

// N of "gpu:N"; nothing for the host and for names that make no sense.
std::optional<int> gpu_number(std::string_view name);

}  // namespace assay
