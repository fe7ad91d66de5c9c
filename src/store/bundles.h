#pragma once

// Cuts a plan into bundles: cases of similar cost that a claimer gets together, each with work for
// a few seconds. The last bundles are smaller, so that all claimers end at the same time: a bundle
// has at most 1/kShares of the work that is left when it is claimed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

// Claimers get bundles by falling `rank`, and bundles of equal rank by rising `number`.
struct CutBundle {
  std::int64_t number = 0;
  std::int64_t rank = 0;  // expected µs of its most expensive case; negative: kept for the end
  std::int64_t cases = 0;
  std::int64_t work_us = 0;  // expected work of all its cases
  std::int64_t left_us = 0;  // expected work of this bundle and all later ones; 0: not known
};

// Assigns the cases of one plan to bundles.
class BundleCutter {
 public:
  static constexpr std::int64_t kShares = 128;
  static constexpr std::int64_t kLeastUs = 10'000;  // no bundle is cut smaller than this

  // Bundles get numbers from `first` on and hold about `bundle_us` µs of expected work; a case that
  // takes longer gets a bundle of its own. `all_us`: the work of all cases, for place_sorted().
  BundleCutter(std::int64_t first, std::int64_t bundle_us, std::int64_t all_us = 0);

  // The number of the bundle of the next case. Cases must come in order of falling cost.
  std::int64_t place_sorted(std::int64_t work_us);
  // Likewise for cases in any order, for plans that are too large to sort: a bundle holds cases
  // whose costs differ by less than a fifth. Some cheap cases are kept for the end.
  std::int64_t place(std::int64_t work_us);

  const std::vector<CutBundle>& bundles() const { return bundles_; }
  // The bundles in the order in which claimers get them, with `left_us` set. Call it last.
  std::vector<CutBundle> in_order();

 private:
  static constexpr std::size_t kPerDoubling = 4;  // steps of cost in filling_
  static constexpr int kKeptOf = 8;               // one of so many cheap cases is kept for the end
  static constexpr std::int64_t kCheapOf = 16;    // a cheap case costs at most 1/16 of a bundle
  // A bundle that is not full yet.
  struct Filling {
    std::size_t bundle = 0;  // index in bundles_
    std::int64_t us = 0;     // work so far; 0: the next case starts a new bundle
  };

  std::int64_t size_us(std::int64_t left_us) const;
  CutBundle& begin_bundle(std::int64_t rank);
  bool is_kept(std::int64_t work_us);
  std::int64_t place_kept(std::int64_t work_us);

  std::int64_t first_;
  std::int64_t bundle_us_;
  std::int64_t all_us_;
  std::int64_t before_us_ = 0;  // work of the cases that place_sorted() has placed
  std::int64_t cut_us_ = 0;     // value of before_us_ at which the next bundle starts
  std::int64_t kept_us_ = 0;    // work that is kept for the end
  std::int64_t kept_ = 0;       // bundles that are kept for the end
  int cheap_ = 0;               // cheap cases since one was kept
  Filling keeping_;             // the bundle that gets the next kept case
  std::vector<CutBundle> bundles_;
  std::array<Filling, kPerDoubling * 64> filling_{};  // by step of cost
};

}  // namespace assay
