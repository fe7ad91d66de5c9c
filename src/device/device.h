#pragma once

// The interface of a device for lanes and slots. A device fills tensors in its memory, computes
// their checksums, compares them and shares them with other processes. `cpu` is the host; `gpu:N`
// comes from a plug-in that is loaded at run time.
//
// The functions below start work in the order of the calls, after the work that the framework in
// the same process has started. It is complete after synchronize(); measure() waits itself.
// Addresses are in the device's memory unless a comment says otherwise.

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

// Device memory for another process to open. Plain bytes, sent between processes unchanged.
struct SharedMemory {
  std::array<std::uint8_t, 64> handle{};  // of the allocation
  std::uint64_t offset = 0;               // of the memory, in the allocation
  std::uint64_t allocation_bytes = 0;
  std::uint64_t allocation = 0;  // identifies the allocation within its process; never reused
};
static_assert(std::is_trivially_copyable_v<SharedMemory>);

// The exit code of a lane whose device has failed. No later call of that process can use the
// device.
inline constexpr int kDeviceFaultExit = 86;

// An environment entry for processes that open GPUs: they number GPUs as nvidia-smi does.
inline constexpr const char* kGpuOrder = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
// Likewise: one hardware queue per GPU instead of eight. The driver creates and destroys contexts
// serially, and each takes half of the time then (lab/gpu.md). Work on
// several streams runs serially; results are the same.
inline constexpr const char* kGpuQueues = "CUDA_DEVICE_MAX_CONNECTIONS=1";

struct DeviceSpace {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

// An allocation of another process, mapped here.
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
  // The checksum() of fill/fill.h. *result is valid after the next synchronize().
  virtual Status checksum(const void* memory, std::uint64_t bytes, std::uint64_t* result) = 0;
  // Each address may be on the host. Copies of host memory that is not pinned are synchronous.
  virtual Status copy(void* to, const void* from, std::uint64_t bytes) = 0;
  // Waits for all work. An error means that a kernel of this process has faulted; the process
  // cannot use the device any more.
  virtual Status synchronize() = 0;
  // Records an event behind the work that was started so far; reached() tells without waiting
  // whether it is complete. A new mark replaces the previous one. Only synchronize() waits for
  // streams other than the framework's default stream.
  virtual Status mark() = 0;
  virtual Result<bool> reached() = 0;

  virtual Result<Measurement> measure(DType dtype, const void* left, const void* right,
                                      std::uint64_t count, Tolerance under) = 0;

  virtual Result<void*> allocate(std::uint64_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual Result<DeviceSpace> space() = 0;
  // Locks host pages for asynchronous copies; unpin() unlocks them.
  virtual Status pin(void* host, std::uint64_t bytes) = 0;
  virtual void unpin(void* host) = 0;

  // A handle for another process. Memory that cannot be shared in place is copied first. Valid
  // until end_sharing() or until the memory is freed.
  virtual Result<SharedMemory> share(const void* memory, std::uint64_t bytes) = 0;
  virtual void end_sharing() = 0;
  virtual Result<OpenedMemory> open(const SharedMemory& shared) = 0;
  virtual void close(std::byte* base) = 0;
};

Device& host_device();

// Opens "cpu", or "gpu:N" through the plug-in. The error says what to do.
Result<std::shared_ptr<Device>> open_device(std::string_view name);

// N of "gpu:N"; nullopt for other names.
std::optional<int> gpu_number(std::string_view name);

}  // namespace assay
