#include "store/bundles.h"

#include <algorithm>
#include <cmath>

namespace assay {

BundleCutter::BundleCutter(std::int64_t first, std::int64_t bundle_us)
    : first_(first), bundle_us_(std::max<std::int64_t>(bundle_us, 1)) {}

std::int64_t BundleCutter::place_sorted(std::int64_t work_us) {
  const std::int64_t number = first_ + before_us_ / bundle_us_;
  before_us_ += work_us;
  if (bundles_.empty() || bundles_.back().number != number) {
    bundles_.push_back({number, work_us, 0});
  }
  ++bundles_.back().cases;
  return number;
}

std::int64_t BundleCutter::place(std::int64_t work_us) {
  const double doublings = std::log2(static_cast<double>(std::max<std::int64_t>(work_us, 1)));
  Filling& filling = filling_[static_cast<std::size_t>(doublings * kPerDoubling)];
  if (filling.us == 0) {
    filling.bundle = bundles_.size();
    bundles_.push_back({first_ + static_cast<std::int64_t>(bundles_.size()), 0, 0});
  }
  CutBundle& bundle = bundles_[filling.bundle];
  ++bundle.cases;
  bundle.dearest_us = std::max(bundle.dearest_us, work_us);
  filling.us += std::max<std::int64_t>(work_us, 1);
  if (filling.us >= bundle_us_) filling.us = 0;
  return bundle.number;
}

}  // namespace assay
