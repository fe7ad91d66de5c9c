#pragma once

// The blocks of the last seconds, in bounded memory, for a recorder that writes only on request.

#include <cstddef>
#include <deque>
#include <string>

#include "timeline/model.h"

namespace assay::inject {

class BlockRing {
 public:
  BlockRing(timeline::Nanos keep, std::size_t most_bytes) : keep_(keep), most_bytes_(most_bytes) {}

  // Adds a block with data up to `time`. Drops blocks older than the ring's duration, and the
  // oldest ones if there are too many bytes.
  void push(std::string block, timeline::Nanos time);
  std::size_t bytes() const { return bytes_; }
  // Returns all blocks, oldest first, and empties the ring.
  std::string take();

 private:
  struct Entry {
    std::string block;
    timeline::Nanos time;
  };
  void drop_oldest();

  timeline::Nanos keep_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace assay::inject
