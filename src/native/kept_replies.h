#pragma once

// Replies of a lane whose device works behind its back: they are kept until the device has done all
// that they speak of, and get the checksums that it was still at.

#include <cstdint>
#include <span>
#include <vector>

#include "native/channel.h"
#include "wire/frame.h"

namespace assay::native {

class KeptReplies {
 public:
  // What stands in a reply for a checksum that is still to come; never 0, which is not stored.
  static constexpr std::uint64_t kToCome = ~std::uint64_t{0};

  // `checksums` of the reply's inputs: where the device writes them; nullptr where there is none.
  void keep(std::span<const std::uint8_t> message, std::vector<const std::uint64_t*> checksums);
  std::size_t count() const { return kept_.size(); }

  // Those that are kept now are sent by send_marked(), when the device has come so far.
  void mark() { marked_ = kept_.size(); }
  bool any_marked() const { return marked_ > 0; }
  Status send_marked(Channel& channel);

  // All. To be called when the device has caught up.
  Status send(Channel& channel);

 private:
  struct Kept {
    wire::Bytes message;
    std::vector<const std::uint64_t*> checksums;
  };
  std::vector<Kept> kept_;
  std::size_t marked_ = 0;  // the first of kept_
};

}  // namespace assay::native
