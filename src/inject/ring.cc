#include "inject/ring.h"

#include <utility>

namespace assay::inject {

void BlockRing::drop_oldest() {
  bytes_ -= entries_.front().block.size();
  entries_.pop_front();
}

void BlockRing::push(std::string block, timeline::Nanos time) {
  while (!entries_.empty() && entries_.front().time + keep_ < time) drop_oldest();
  while (!entries_.empty() && bytes_ + block.size() > most_bytes_) drop_oldest();
  if (block.size() > most_bytes_) return;
  bytes_ += block.size();
  block.shrink_to_fit();
  entries_.push_back({std::move(block), time});
}

std::string BlockRing::take() {
  std::string all;
  all.reserve(bytes_);
  while (!entries_.empty()) {
    all += entries_.front().block;
    drop_oldest();
  }
  return all;
}

}  // namespace assay::inject
