#include "device/staging.h"

namespace assay {

Result<std::unique_ptr<Staging>> Staging::make(Device& device) {
  ASSAY_TRY(void* const there, device.allocate(kBlock));
  return std::unique_ptr<Staging>(new Staging(device, there));
}

// If pages cannot be pinned, copies are slower.
Staging::Staging(Device& device, void* there)
    : device_(device),
      here_(static_cast<std::byte*>(::operator new(kBlock, std::align_val_t{kPage}))),
      there_(there),
      pinned_(device.pin(here_.get(), kBlock).has_value()) {}

Staging::~Staging() {
  if (pinned_) device_.unpin(here_.get());
  device_.release(there_);
}

Result<const std::byte*> Staging::send(std::uint64_t bytes,
                                       const std::function<Status(std::span<std::byte>)>& read) {
  if (bytes > kBlock) return fail("staging: a block of " + std::to_string(bytes) + " bytes");
  ASSAY_CHECK(read({here_.get(), bytes}));
  ASSAY_CHECK(device_.copy(there_, here_.get(), bytes));
  return static_cast<const std::byte*>(there_);
}

}  // namespace assay
