#pragma once

// Keeps replies of a lane whose device works asynchronously, until the device has finished the work
// that they describe. Then they get the checksums that the device computed.

#include <cstdint>
#include <span>
#include <vector>

#include "native/channel.h"
#include "wire/frame.h"

namespace assay::native {

class KeptReplies {
 public:
  // Placeholder in a reply for a checksum that the device still computes. Never 0, which is not
  // stored.
  static constexpr std::uint64_t kToCome = ~std::uint64_t{0};

  // `checksums` of the reply's inputs: the addresses to which the device writes them; nullptr:
  // none.
  void keep(std::span<const std::uint8_t> message, std::vector<const std::uint64_t*> checksums);
  std::size_t count() const { return kept_.size(); }

  // Marks the replies kept now. send_marked() sends them when the device has finished their work.
  void mark() { marked_ = kept_.size(); }
  bool any_marked() const { return marked_ > 0; }
  Status send_marked(Channel& channel);

  // Sends all replies. Call it when the device has finished all work.
  Status send(Channel& channel);

 private:
  struct Kept {
    wire::Bytes message;
    std::vector<const std::uint64_t*> checksums;
  };
  std::vector<Kept> kept_;
  std::size_t marked_ = 0;  // index in kept_
};

}  // namespace assay::native
