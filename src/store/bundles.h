#pragma once

// Which cases of a plan are handed out together: bundles of cases of like cost, each with work for
// some seconds. Those that are handed out last are smaller, so that all claimers end together: a
// bundle is at most a part of kShares of the work that is left when its turn comes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

// Bundles are handed out by falling `rank`, and those of the same rank in the order of their
// numbers.
struct CutBundle {
  std::int64_t number = 0;
  std::int64_t rank = 0;  // expected time of its most expensive case; less than 0: kept for the end
  std::int64_t cases = 0;
  std::int64_t work_us = 0;  // expected, of all its cases
  std::int64_t left_us = 0;  // that of it and of all bundles that come after it, where it is known
};

// Cases get numbers from `first` on; `bundle_us` microseconds of expected work are one bundle, and
// a case that takes longer has one to itself.
class BundleCutter {
 public:
  static constexpr std::int64_t kShares = 128;
  static constexpr std::int64_t kLeastUs = 10'000;  // no bundle is cut smaller than this

  // `all_us`: the work of all cases, where they come sorted.
  BundleCutter(std::int64_t first, std::int64_t bundle_us, std::int64_t all_us = 0);

  // The bundle of the next case; the most expensive case comes first.
  std::int64_t place_sorted(std::int64_t work_us);
  // Of the next case in any order: it goes with those that cost at most a fifth more or less. For
  // plans that are too large to be sorted before they are written: some of the cheap cases are kept
  // for the end.
  std::int64_t place(std::int64_t work_us);

  const std::vector<CutBundle>& bundles() const { return bundles_; }
  // In the order in which they are handed out, and with what is left then. Ends the cutting.
  std::vector<CutBundle> in_order();

 private:
  static constexpr std::size_t kPerDoubling = 4;
  static constexpr int kKeptOf = 8;             // of so many cheap cases one is kept for the end
  static constexpr std::int64_t kCheapOf = 16;  // it costs at most such a part of a bundle
  struct Filling {
    std::size_t bundle = 0;  // in bundles_
    std::int64_t us = 0;     // 0: none is begun
  };

  std::int64_t size_us(std::int64_t left_us) const;
  CutBundle& begin_bundle(std::int64_t rank);
  bool is_kept(std::int64_t work_us);
  std::int64_t place_kept(std::int64_t work_us);

  std::int64_t first_;
  std::int64_t bundle_us_;
  std::int64_t all_us_;
  std::int64_t before_us_ = 0;  // of the cases that were placed in order
  std::int64_t cut_us_ = 0;     // where the next bundle begins
  std::int64_t kept_us_ = 0;    // for the end
  std::int64_t kept_ = 0;       // bundles
  int cheap_ = 0;               // cases since one was kept
  Filling keeping_;
  std::vector<CutBundle> bundles_;
  std::array<Filling, kPerDoubling * 64> filling_{};  // by cost
};

}  // namespace assay
