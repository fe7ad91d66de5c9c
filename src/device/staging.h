#pragma once

// Copies host bytes to a device block by block, for comparison there. A device compares at many
// times the host's speed, and the bytes cross the bus in either case.

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>

#include "base/result.h"
#include "device/device.h"

namespace assay {

class Staging {
 public:
  // Block size in bytes: large enough to be worth a copy, and a multiple of every element's size.
  static constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;

  // An error if the device has no memory for a block.
  static Result<std::unique_ptr<Staging>> make(Device& device);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  // `read` fills a buffer of `bytes` (at most kBlock), which is copied to the device. Returns its
  // address there, valid for work that starts after this call. The device must have finished its
  // work on the previous block.
  Result<const std::byte*> send(std::uint64_t bytes,
                                const std::function<Status(std::span<std::byte>)>& read);

 private:
  struct FreePages {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kPage}); }
  };
  static constexpr std::size_t kPage = 4096;
  Staging(Device& device, void* there);

  Device& device_;
  std::unique_ptr<std::byte, FreePages> here_;
  void* there_;
  bool pinned_;
};

}  // namespace assay
