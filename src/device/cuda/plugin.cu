// The plug-in for NVIDIA GPUs. It is linked with the static CUDA runtime, so it loads on any
// machine. It shares the framework's context (the device's primary context) and works on the
// default stream, after the framework's work.

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "device/plugin_abi.h"
#include "fill/checksum_cuda.h"
#include "fill/fill_cuda.h"
#include "measure/measure_cuda.h"

namespace {

using assay::Measurement;
using assay::OpenedMemory;
using assay::SharedMemory;

// The most checksums between two calls of synchronize().
constexpr std::size_t kSums = 4096;
constexpr std::size_t kHandleBytes = sizeof(cudaIpcMemHandle_t);
static_assert(kHandleBytes == sizeof(SharedMemory::handle));

// The two driver functions without a counterpart in the runtime.
struct Driver {
  CUresult (*range)(CUdeviceptr*, std::size_t*, CUdeviceptr) = nullptr;
  CUresult (*attribute)(void*, CUpointer_attribute, CUdeviceptr) = nullptr;

  cudaError_t load() {
    const cudaError_t error = entry("cuMemGetAddressRange", range);
    return error == cudaSuccess ? entry("cuPointerGetAttribute", attribute) : error;
  }

 private:
  template <typename Function>
  static cudaError_t entry(const char* name, Function& function) {
    cudaDriverEntryPointQueryResult found{};
    void* address = nullptr;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess) return error;
    if (found != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
    function = reinterpret_cast<Function>(address);
    return cudaSuccess;
  }
};

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

struct FreeDevice {
  void operator()(void* memory) const { (void)cudaFree(memory); }
};
struct FreeHost {
  void operator()(void* memory) const { (void)cudaFreeHost(memory); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using DeviceMemory = std::unique_ptr<void, FreeDevice>;
using HostMemory = std::unique_ptr<void, FreeHost>;

cudaError_t allocate(std::size_t bytes, DeviceMemory& memory) {
  void* made = nullptr;
  const cudaError_t error = cudaMalloc(&made, bytes);
  memory.reset(made);
  return error;
}
cudaError_t allocate(std::size_t bytes, HostMemory& memory) {
  void* made = nullptr;
  const cudaError_t error = cudaHostAlloc(&made, bytes, cudaHostAllocDefault);
  memory.reset(made);
  return error;
}

#define PLUGIN_CHECK(...)                                 \
  do {                                                    \
    const cudaError_t plugin_error = (__VA_ARGS__);       \
    if (plugin_error != cudaSuccess) return plugin_error; \
  } while (false)

}  // namespace

struct AssayDevice {
  // Copies of shared memory that has no handle of its own.
  struct Copy {
    DeviceMemory memory;
    std::size_t bytes = 0;
    bool used = false;
  };
  // A checksum in flight. Its index in the list is the index of its sum.
  struct Pending {
    std::uint64_t bytes = 0;
    std::uint64_t* result = nullptr;
  };

  explicit AssayDevice(int number) : number_(number) {}

  cudaError_t open() {
    PLUGIN_CHECK(cudaSetDevice(number_));
    PLUGIN_CHECK(cudaFree(nullptr));  // creates the context
    PLUGIN_CHECK(driver_.load());
    PLUGIN_CHECK(allocate(kSums * sizeof(std::uint64_t), sums_));
    PLUGIN_CHECK(allocate(kSums * sizeof(std::uint64_t), host_sums_));
    cudaEvent_t event = nullptr;
    PLUGIN_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    mark_.reset(event);
    return cudaMemset(sums_.get(), 0, kSums * sizeof(std::uint64_t));
  }

  cudaError_t fill(const assay::FillRule& rule, const assay::FillKey& key, assay::DType dtype,
                   void* out, std::uint64_t count, std::uint64_t first) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    return static_cast<cudaError_t>(assay::fill_cuda(rule, key, dtype, out, count, first));
  }

  cudaError_t checksum(const void* memory, std::uint64_t bytes, std::uint64_t* result) {
    PLUGIN_CHECK(cudaSetDevice(number_));
    if (pending_.size() == kSums) PLUGIN_CHECK(synchronize());
    auto* const sum = static_cast<std::uint64_t*>(sums_.get()) + pending_.size();
    pending_.push_back({bytes, result});
    return static_cast<cudaError_t>(assay::add_checksum_cuda(memory, bytes, sum));
  }

  cudaError_t copy(void* to, const void* from, std::uint64_t bytes) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    return bytes == 0 ? cudaSuccess : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault);
  }

  cudaError_t synchronize() {
    PLUGIN_CHECK(cudaSetDevice(number_));
    PLUGIN_CHECK(fetch_sums());
    const std::size_t bytes = pending_.size() * sizeof(std::uint64_t);
    if (bytes > 0) PLUGIN_CHECK(cudaMemsetAsync(sums_.get(), 0, bytes));
    // All streams: a framework may have used others.
    PLUGIN_CHECK(cudaDeviceSynchronize());
    give_sums();
    pending_.clear();
    fetched_ = given_ = 0;
    return cudaSuccess;
  }

  cudaError_t mark() {
    PLUGIN_CHECK(cudaSetDevice(number_));
    PLUGIN_CHECK(fetch_sums());
    return cudaEventRecord(mark_.get(), nullptr);
  }

  cudaError_t reached(bool* yes) {
    PLUGIN_CHECK(cudaSetDevice(number_));
    const cudaError_t error = cudaEventQuery(mark_.get());
    *yes = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();  // else the framework's next call would report it
      return cudaSuccess;
    }
    if (*yes) give_sums();
    return error;
  }

  cudaError_t measure(assay::DType dtype, const void* left, const void* right, std::uint64_t count,
                      assay::Tolerance under, Measurement& result) {
    PLUGIN_CHECK(cudaSetDevice(number_));
    if (!scratch_) {
      PLUGIN_CHECK(allocate(assay::kMeasureCudaScratch, scratch_));
      PLUGIN_CHECK(allocate(assay::kMeasureCudaResult, found_));
      PLUGIN_CHECK(cudaMemset(scratch_.get(), 0, assay::kMeasureCudaScratch));
    }
    return static_cast<cudaError_t>(assay::measure_cuda(dtype, left, right, count, under,
                                                        {scratch_.get(), found_.get()}, result));
  }

  cudaError_t allocate_memory(std::uint64_t bytes, void** memory) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    return cudaMalloc(memory, bytes);
  }

  cudaError_t space(assay::DeviceSpace& space) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    std::size_t free = 0;
    std::size_t total = 0;
    PLUGIN_CHECK(cudaMemGetInfo(&free, &total));
    space = {free, total};
    return cudaSuccess;
  }

  cudaError_t pin(void* host, std::uint64_t bytes) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    return cudaHostRegister(host, bytes, cudaHostRegisterDefault);
  }

  // Uses the handle of the allocation. Memory pools and piecewise mappings have none: then the
  // memory is copied, and the copy's handle is used.
  cudaError_t share(const void* memory, std::uint64_t bytes, SharedMemory& shared) {
    PLUGIN_CHECK(cudaSetDevice(number_));
    if (share_as_it_is(memory, bytes, shared) == cudaSuccess) return cudaSuccess;
    (void)cudaGetLastError();  // a missing handle is not a fault
    Copy* copy = nullptr;
    PLUGIN_CHECK(free_copy(bytes, copy));
    PLUGIN_CHECK(cudaMemcpyAsync(copy->memory.get(), memory, bytes, cudaMemcpyDeviceToDevice));
    copy->used = true;
    return share_as_it_is(copy->memory.get(), bytes, shared);
  }

  // Another process may still have these copies open; they are reused for later results.
  void end_sharing() {
    for (Copy& copy : copies_) copy.used = false;
    std::erase_if(copies_, [](const Copy& copy) { return copy.bytes > assay::kKeepOpenBytes; });
  }

  cudaError_t open_shared(const SharedMemory& shared, OpenedMemory& opened) const {
    PLUGIN_CHECK(cudaSetDevice(number_));
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, shared.handle.data(), kHandleBytes);
    void* base = nullptr;
    PLUGIN_CHECK(cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess));
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    if (driver_.range(&begin, &bytes, address_of(base)) != CUDA_SUCCESS) {
      (void)cudaIpcCloseMemHandle(base);
      return cudaErrorInvalidValue;
    }
    opened = {static_cast<std::byte*>(base), bytes};
    return cudaSuccess;
  }

 private:
  cudaError_t share_as_it_is(const void* memory, std::uint64_t bytes, SharedMemory& shared) const {
    CUdeviceptr begin = 0;
    std::size_t size = 0;
    if (driver_.range(&begin, &size, address_of(memory)) != CUDA_SUCCESS) {
      return cudaErrorInvalidValue;
    }
    const std::uint64_t offset = address_of(memory) - begin;
    // A piecewise mapping has one range for each piece.
    if (offset + bytes > size) return cudaErrorInvalidValue;
    unsigned int capable = 0;
    if (driver_.attribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, begin) !=
            CUDA_SUCCESS ||
        capable == 0) {
      return cudaErrorNotSupported;
    }
    unsigned long long number = 0;
    if (driver_.attribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, begin) != CUDA_SUCCESS) {
      return cudaErrorNotSupported;
    }
    cudaIpcMemHandle_t handle;
    PLUGIN_CHECK(cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(begin)));
    std::memcpy(shared.handle.data(), &handle, kHandleBytes);
    shared.offset = offset;
    shared.allocation_bytes = size;
    shared.allocation = number;
    return cudaSuccess;
  }

  cudaError_t free_copy(std::uint64_t bytes, Copy*& found) {
    for (Copy& copy : copies_) {
      if (!copy.used && copy.bytes >= bytes) {
        found = &copy;
        return cudaSuccess;
      }
    }
    Copy copy;
    copy.bytes = std::max<std::size_t>(bytes, std::size_t{1} << 20);
    PLUGIN_CHECK(allocate(copy.bytes, copy.memory));
    copies_.push_back(std::move(copy));
    found = &copies_.back();
    return cudaSuccess;
  }

  // Starts the copy to the host for all sums that are still on the device.
  cudaError_t fetch_sums() {
    const std::size_t count = pending_.size() - fetched_;
    if (count == 0) return cudaSuccess;
    const auto* const from = static_cast<const std::uint64_t*>(sums_.get()) + fetched_;
    auto* const to = static_cast<std::uint64_t*>(host_sums_.get()) + fetched_;
    fetched_ = pending_.size();
    return cudaMemcpyAsync(to, from, count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost);
  }

  // Writes the results that have arrived.
  void give_sums() {
    const auto* const sums = static_cast<const std::uint64_t*>(host_sums_.get());
    for (; given_ < fetched_; ++given_) {
      const Pending& pending = pending_[given_];
      *pending.result = assay::checksum_of_cuda_sum(sums[given_], pending.bytes);
    }
  }

  int number_;
  Driver driver_;
  DeviceMemory sums_;
  HostMemory host_sums_;
  std::vector<Pending> pending_;
  std::size_t fetched_ = 0;  // entries of pending_ whose copy to the host has started
  std::size_t given_ = 0;    // entries of pending_ whose results are written
  Event mark_;
  DeviceMemory scratch_;  // for measure(), allocated on first use: lanes never measure
  HostMemory found_;
  std::vector<Copy> copies_;
};

namespace {

const char* describe(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

// The result of a call. Clears an error that is not sticky, so that neither our next call nor the
// framework's reports it.
int done(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

int open_device(int number, AssayDevice** device) {
  auto made = std::unique_ptr<AssayDevice>(new (std::nothrow) AssayDevice(number));
  if (!made) return cudaErrorMemoryAllocation;
  const cudaError_t error = made->open();
  if (error == cudaSuccess) *device = made.release();
  return done(error);
}

const char* toolkit_name() {
  static const std::string name = "CUDA " + std::to_string(CUDART_VERSION / 1000) + "." +
                                  std::to_string(CUDART_VERSION % 1000 / 10);
  return name.c_str();
}

const AssayDevicePlugin& table() {
  static const AssayDevicePlugin plugin = {
      .abi = assay::kDevicePluginAbi,
      .fill_version = assay::kFillVersion,
      .measurement_version = assay::kMeasurementVersion,
      .measurement_bytes = sizeof(Measurement),
      // A driver runs code from every toolkit of its own major version.
      .needs_driver = CUDART_VERSION / 1000 * 1000,
      .name = toolkit_name(),
      .describe = describe,
      .open = open_device,
      .close = [](AssayDevice* device) { delete device; },
      .fill = [](AssayDevice* device, const assay::FillRule* rule, const assay::FillKey* key,
                 std::uint8_t dtype, void* out, std::uint64_t count, std::uint64_t first) -> int {
        return done(device->fill(*rule, *key, static_cast<assay::DType>(dtype), out, count, first));
      },
      .checksum = [](AssayDevice* device, const void* memory, std::uint64_t bytes,
                     std::uint64_t* result) -> int {
        return done(device->checksum(memory, bytes, result));
      },
      .copy = [](AssayDevice* device, void* to, const void* from, std::uint64_t bytes) -> int {
        return done(device->copy(to, from, bytes));
      },
      .synchronize = [](AssayDevice* device) -> int { return done(device->synchronize()); },
      .mark = [](AssayDevice* device) -> int { return done(device->mark()); },
      .reached = [](AssayDevice* device, bool* yes) -> int { return done(device->reached(yes)); },
      .measure = [](AssayDevice* device, std::uint8_t dtype, const void* left, const void* right,
                    std::uint64_t count, const assay::Tolerance* under,
                    Measurement* result) -> int {
        return done(
            device->measure(static_cast<assay::DType>(dtype), left, right, count, *under, *result));
      },
      .allocate = [](AssayDevice* device, std::uint64_t bytes, void** memory) -> int {
        return done(device->allocate_memory(bytes, memory));
      },
      .release = [](AssayDevice*, void* memory) { (void)cudaFree(memory); },
      .space = [](AssayDevice* device, assay::DeviceSpace* space) -> int {
        return done(device->space(*space));
      },
      .pin = [](AssayDevice* device, void* host, std::uint64_t bytes) -> int {
        return done(device->pin(host, bytes));
      },
      .unpin = [](AssayDevice*, void* host) { (void)cudaHostUnregister(host); },
      .share = [](AssayDevice* device, const void* memory, std::uint64_t bytes,
                  SharedMemory* shared) -> int {
        return done(device->share(memory, bytes, *shared));
      },
      .end_sharing = [](AssayDevice* device) { device->end_sharing(); },
      .open_shared = [](AssayDevice* device, const SharedMemory* shared, OpenedMemory* opened)
          -> int { return done(device->open_shared(*shared, *opened)); },
      .close_shared = [](AssayDevice*, std::byte* base) { (void)cudaIpcCloseMemHandle(base); },
  };
  return plugin;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const AssayDevicePlugin* assay_device_plugin() {
  return &table();
}
