#pragma once

// Memory that one lane has lent by handles: each allocation is opened once, because that takes
// 100 µs and more, and stays open while it is small.

#include <cstdint>
#include <map>
#include <memory>

#include "base/result.h"
#include "device/device.h"

namespace assay {

class SharedCache {
 public:
  explicit SharedCache(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;
  ~SharedCache();

  Device& device() const { return *device_; }
  // Where these bytes lie for this process. Fails when they do not lie in the allocation.
  Result<const std::byte*> at(const SharedMemory& shared, std::uint64_t bytes);
  // Closes what is too large to be kept; to be called before the lane runs its next case.
  void close_large();
  std::size_t open() const { return opened_.size(); }

 private:
  std::shared_ptr<Device> device_;
  std::map<std::uint64_t, OpenedMemory> opened_;  // by the allocation's number in the lane
};

}  // namespace assay
