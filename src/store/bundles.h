#pragma once

// Which cases of a plan are handed out together: bundles of cases of like cost, each with work for
// some seconds.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

struct CutBundle {
  std::int64_t number = 0;
  std::int64_t dearest_us = 0;  // expected time of its most expensive case
  std::int64_t cases = 0;
};

// Cases get numbers from `first` on; `bundle_us` microseconds of expected work are one bundle, and
// a case that takes longer has one to itself.
class BundleCutter {
 public:
  BundleCutter(std::int64_t first, std::int64_t bundle_us);

  // The bundle of the next case; the most expensive case comes first.
  std::int64_t place_sorted(std::int64_t work_us);
  // Of the next case in any order: it goes with those that cost at most a fifth more or less. For
  // plans that are too large to be sorted before they are written.
  std::int64_t place(std::int64_t work_us);

  const std::vector<CutBundle>& bundles() const { return bundles_; }

 private:
  static constexpr std::size_t kPerDoubling = 4;
  struct Filling {
    std::size_t bundle = 0;  // in bundles_
    std::int64_t us = 0;     // 0: none is begun
  };

  std::int64_t first_;
  std::int64_t bundle_us_;
  std::int64_t before_us_ = 0;  // of the cases that were placed in order
  std::vector<CutBundle> bundles_;
  std::array<Filling, kPerDoubling * 64> filling_{};  // by cost
};

}  // namespace assay
