#pragma once

// The allocations that one lane has shared by handles. Opening an allocation takes 100 µs or more,
// so each is opened once. It stays open while it is small and the total is small (plugin_abi.h).

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "device/staging.h"

namespace assay {

// A device that is opened on first use. On a GPU that takes half a second and half a gigabyte.
class LazyDevice {
 public:
  explicit LazyDevice(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // Opens the device in the background. If that fails, get() tries again.
  void open_ahead();
  Result<Device*> get();
  // The staging buffers of the open device; nullptr when the device has no memory for them.
  Staging* staging();
  // Whether an attempt to open the device has failed.
  bool failed() const { return failed_; }

 private:
  std::string name_;
  std::future<Result<std::shared_ptr<Device>>> ahead_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Staging> staging_;  // destroyed before its device
  bool failed_ = false;
};

class SharedCache {
 public:
  explicit SharedCache(std::shared_ptr<LazyDevice> device) : source_(std::move(device)) {}
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;
  ~SharedCache() { close_all(); }

  // The address of these bytes in this process, in the memory of device(). An error if they are not
  // inside the allocation. It may invalidate addresses of earlier calls.
  Result<const std::byte*> at(const SharedMemory& shared, std::uint64_t bytes);
  Device* device() const { return device_; }  // nullptr before the first at()
  Staging* staging() { return source_->staging(); }
  // Closes allocations beyond the limits. Called before the lane runs its next case.
  void close_large();
  // Closes all allocations, because the lane has ended.
  void close_all();
  std::size_t open() const { return opened_.size(); }

 private:
  std::shared_ptr<LazyDevice> source_;
  Device* device_ = nullptr;
  std::map<std::uint64_t, OpenedMemory> opened_;  // by SharedMemory::allocation
};

}  // namespace assay
