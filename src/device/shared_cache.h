#pragma once

// Memory that one lane has lent by handles: each allocation is opened once, because that takes
// 100 µs and more, and stays open while it is small and not among many (plugin_abi.h).

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "device/staging.h"

namespace assay {

// A device that is opened when it is first needed: on a GPU that takes half a second and half a
// gigabyte.
class LazyDevice {
 public:
  explicit LazyDevice(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // Opens it in the background; where that fails, get() tries again.
  void open_ahead();
  Result<Device*> get();
  // Of the device, which is open; nullptr where that has no memory for it.
  Staging* staging();
  // It was needed and could not be opened.
  bool failed() const { return failed_; }

 private:
  std::string name_;
  std::future<Result<std::shared_ptr<Device>>> ahead_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Staging> staging_;  // goes before its device
  bool failed_ = false;
};

class SharedCache {
 public:
  explicit SharedCache(std::shared_ptr<LazyDevice> device) : source_(std::move(device)) {}
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;
  ~SharedCache() { close_all(); }

  // Where these bytes lie for this process, in the memory of device(). Fails when they do not lie
  // in the allocation.
  // What an earlier call gave may be closed by this one.
  Result<const std::byte*> at(const SharedMemory& shared, std::uint64_t bytes);
  Device* device() const { return device_; }  // nullptr before the first at()
  Staging* staging() { return source_->staging(); }
  // Closes what is too large or too much to be kept; to be called before the lane runs its next
  // case.
  void close_large();
  // The lane is gone.
  void close_all();
  std::size_t open() const { return opened_.size(); }

 private:
  std::shared_ptr<LazyDevice> source_;
  Device* device_ = nullptr;
  std::map<std::uint64_t, OpenedMemory> opened_;  // by the allocation's number in the lane
};

}  // namespace assay
