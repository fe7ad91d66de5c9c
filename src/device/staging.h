#pragma once

// The way of bytes from the host to a device, where they are compared with others: a device reads
// at many times the host's speed, and one bus carries them either way.

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
  // Bytes that are worth a device's trouble, a multiple of any element's.
  static constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;

  // Fails where the device has not so much memory left.
  static Result<std::unique_ptr<Staging>> make(Device& device);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  // Sends what `read` puts there, at most kBlock bytes, and says where it will lie for whatever the
  // device does next. Of what was sent before, the device must have done all.
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
