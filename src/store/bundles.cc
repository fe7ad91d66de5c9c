#include "store/bundles.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay {
namespace {

// More than any plan's number of bundles. The ranks of kept bundles are small numbers minus kEnd.
constexpr std::int64_t kEnd = std::int64_t{1} << 60;

}  // namespace

BundleCutter::BundleCutter(std::int64_t first, std::int64_t bundle_us, std::int64_t all_us)
    : first_(first), bundle_us_(std::max<std::int64_t>(bundle_us, 1)), all_us_(all_us) {}

// The size of the next bundle if `left_us` of work is not claimed yet.
std::int64_t BundleCutter::size_us(std::int64_t left_us) const {
  return std::clamp(left_us / kShares, std::min(kLeastUs, bundle_us_), bundle_us_);
}

CutBundle& BundleCutter::begin_bundle(std::int64_t rank) {
  CutBundle& begun = bundles_.emplace_back();
  begun.number = first_ + static_cast<std::int64_t>(bundles_.size()) - 1;
  begun.rank = rank;
  return begun;
}

std::int64_t BundleCutter::place_sorted(std::int64_t work_us) {
  if (bundles_.empty() || before_us_ >= cut_us_) {
    begin_bundle(work_us);
    const std::int64_t size = all_us_ > 0 ? size_us(all_us_ - before_us_) : bundle_us_;
    cut_us_ += ((before_us_ - cut_us_) / size + 1) * size;
  }
  before_us_ += work_us;
  CutBundle& bundle = bundles_.back();
  ++bundle.cases;
  bundle.work_us += work_us;
  return bundle.number;
}

// Keeps one of kKeptOf cheap cases, until the kept work is enough for bundles of full size.
bool BundleCutter::is_kept(std::int64_t work_us) {
  if (work_us > bundle_us_ / kCheapOf || kept_us_ >= kShares * bundle_us_) return false;
  if (++cheap_ < kKeptOf) return false;
  cheap_ = 0;
  return true;
}

// The bundle that is started first is claimed last, and is the smallest.
std::int64_t BundleCutter::place_kept(std::int64_t work_us) {
  if (keeping_.us == 0) {
    keeping_.bundle = bundles_.size();
    begin_bundle(++kept_ - kEnd);
  }
  CutBundle& bundle = bundles_[keeping_.bundle];
  ++bundle.cases;
  bundle.work_us += work_us;
  keeping_.us += work_us;
  kept_us_ += work_us;
  if (keeping_.us >= size_us(kept_us_)) keeping_.us = 0;
  return bundle.number;
}

std::int64_t BundleCutter::place(std::int64_t work_us) {
  const std::int64_t us = std::max<std::int64_t>(work_us, 1);
  if (is_kept(us)) return place_kept(us);
  Filling& filling =
      filling_[static_cast<std::size_t>(std::log2(static_cast<double>(us)) * kPerDoubling)];
  if (filling.us == 0) {
    filling.bundle = bundles_.size();
    begin_bundle(0);
  }
  CutBundle& bundle = bundles_[filling.bundle];
  ++bundle.cases;
  bundle.work_us += us;
  bundle.rank = std::max(bundle.rank, work_us);
  filling.us += us;
  if (filling.us >= bundle_us_) filling.us = 0;
  return bundle.number;
}

std::vector<CutBundle> BundleCutter::in_order() {
  std::sort(bundles_.begin(), bundles_.end(), [](const CutBundle& a, const CutBundle& b) {
    return std::tie(b.rank, a.number) < std::tie(a.rank, b.number);
  });
  std::int64_t left_us = 0;
  for (auto bundle = bundles_.rbegin(); bundle != bundles_.rend(); ++bundle) {
    left_us += bundle->work_us;
    bundle->left_us = left_us;
  }
  return std::move(bundles_);
}

}  // namespace assay
