#pragma once

// What a recorder keeps when it writes only on demand: the blocks of the last minute, in bounded
// memory.

#include <cstddef>
#include <deque>
#include <string>

#include "timeline/model.h"

namespace assay::inject {

class BlockRing {
 public:
  BlockRing(timeline::Nanos keep, std::size_t most_bytes) : keep_(keep), most_bytes_(most_bytes) {}

  // A block that holds what came until `time`. What is older than the ring keeps goes, and the
  // oldest when there is too much.
  void push(std::string block, timeline::Nanos time);
  std::size_t bytes() const { return bytes_; }
  // All blocks, the oldest first; the ring is empty after it.
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
