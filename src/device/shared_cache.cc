#include "device/shared_cache.h"

#include "device/plugin_abi.h"

namespace assay {

void LazyDevice::open_ahead() {
  ahead_ = std::async(std::launch::async, [name = name_] { return open_device(name); });
}

Result<Device*> LazyDevice::get() {
  if (ahead_.valid()) device_ = ahead_.get().value_or(nullptr);
  if (!device_) {
    failed_ = true;
    ASSAY_TRY(device_, open_device(name_));
    failed_ = false;
  }
  return device_.get();
}

Staging* LazyDevice::staging() {
  if (device_ && !staging_) {
    auto made = Staging::make(*device_);
    if (made) staging_ = std::move(*made);
  }
  return staging_.get();
}

Result<const std::byte*> SharedCache::at(const SharedMemory& shared, std::uint64_t bytes) {
  if (device_ == nullptr) {
    ASSAY_TRY(device_, source_->get());
  }
  auto found = opened_.find(shared.allocation);
  if (found == opened_.end()) {
    auto opened = device_->open(shared);
    if (!opened && !opened_.empty()) {
      // The lane has freed an allocation that is still open here, and the new one has its address.
      // CUDA does not map the same memory twice.
      close_all();
      opened = device_->open(shared);
    }
    if (!opened) return tl::unexpected<Error>(std::move(opened.error()));
    found = opened_.emplace(shared.allocation, *opened).first;
  }
  // Bounds come from the mapping: the lane's numbers are not trusted.
  const OpenedMemory& opened = found->second;
  if (shared.offset > opened.bytes || bytes > opened.bytes - shared.offset) {
    return fail("a lane sent a tensor that does not lie in the memory that it shares");
  }
  return opened.base + shared.offset;
}

void SharedCache::close_large() {
  std::uint64_t kept = 0;
  std::erase_if(opened_, [&](const auto& entry) {
    if (entry.second.bytes <= kKeepOpenBytes) {
      kept += entry.second.bytes;
      return false;
    }
    device_->close(entry.second.base);
    return true;
  });
  // Memory that the lane has freed becomes free when it is closed here. The lane does not tell
  // which allocations it has freed.
  if (kept > kKeepOpenBytesInAll) close_all();
}

void SharedCache::close_all() {
  for (const auto& [number, opened] : opened_) device_->close(opened.base);
  opened_.clear();
}

}  // namespace assay
