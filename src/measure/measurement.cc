#include "measure/measurement.h"

#include <algorithm>

namespace assay {
namespace {

Offender shifted(Offender offender, std::uint64_t by) {
  if (offender) offender.index += by;
  return offender;
}

}  // namespace

void append(Measurement& head, const Measurement& tail) {
  if (!head.first) head.first = shifted(tail.first, head.count);
  if (tail.worst.excess > head.worst.excess) head.worst = shifted(tail.worst, head.count);
  head.count += tail.count;
  head.bit_equal += tail.bit_equal;
  head.both_nan += tail.both_nan;
  head.nan_left_only += tail.nan_left_only;
  head.nan_right_only += tail.nan_right_only;
  head.inf_disagree += tail.inf_disagree;
  head.beyond += tail.beyond;
  head.max_abs = std::max(head.max_abs, tail.max_abs);
  head.max_rel = std::max(head.max_rel, tail.max_rel);
  for (std::size_t i = 0; i < kRtolGrid.size(); ++i) {
    head.atol_needed[i] = std::max(head.atol_needed[i], tail.atol_needed[i]);
  }
  for (std::size_t i = 0; i < kUlpBuckets; ++i) head.ulp_histogram[i] += tail.ulp_histogram[i];
}

bool special_values_agree(const Measurement& m) {
  return m.nan_left_only == 0 && m.nan_right_only == 0 && m.inf_disagree == 0;
}

double atol_sufficient(const Measurement& measurement, double rtol) {
  if (!(rtol >= 0)) return std::numeric_limits<double>::infinity();
  const auto& needed = measurement.atol_needed;
  const auto* const above = std::upper_bound(kRtolGrid.begin(), kRtolGrid.end(), rtol);
  const auto right = static_cast<std::size_t>(above - kRtolGrid.begin());
  const std::size_t left = right - 1;
  if (right == kRtolGrid.size() || needed[left] == needed[right]) return needed[left];
  const double share = (rtol - kRtolGrid[left]) / (kRtolGrid[right] - kRtolGrid[left]);
  return needed[left] + share * (needed[right] - needed[left]);
}

bool agrees(const Measurement& measurement, Tolerance tolerance) {
  if (tolerance == measurement.under) return measurement.beyond == 0;
  return special_values_agree(measurement) &&
         atol_sufficient(measurement, tolerance.rtol) <= tolerance.atol;
}

}  // namespace assay
