#include "device/shared_cache.h"

#include "device/plugin_abi.h"

namespace assay {

Result<Device*> LazyDevice::get() {
  if (!device_) {
    ASSAY_TRY(device_, open_device(name_));
  }
  return device_.get();
}

Result<const std::byte*> SharedCache::at(const SharedMemory& shared, std::uint64_t bytes) {
  if (device_ == nullptr) {
    ASSAY_TRY(device_, source_->get());
  }
  auto found = opened_.find(shared.allocation);
  if (found == opened_.end()) {
    ASSAY_TRY(const OpenedMemory opened, device_->open(shared));
    found = opened_.emplace(shared.allocation, opened).first;
  }
  // Of the mapping, not of what the lane says.
  const OpenedMemory& opened = found->second;
  if (shared.offset > opened.bytes || bytes > opened.bytes - shared.offset) {
    return fail("a lane sent a tensor that does not lie in the memory that it shares");
  }
  return opened.base + shared.offset;
}

void SharedCache::close_large() {
  std::erase_if(opened_, [&](const auto& entry) {
    if (entry.second.bytes <= kKeepOpenBytes) return false;
    device_->close(entry.second.base);
    return true;
  });
}

void SharedCache::close_all() {
  for (const auto& [number, opened] : opened_) device_->close(opened.base);
  opened_.clear();
}

}  // namespace assay
