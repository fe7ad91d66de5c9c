#include "store/fair_share.h"

#include <cmath>

namespace assay {
namespace {

// Time constant of the exponential decay of speeds.
constexpr double kMemoryUs = 20e6;
// A claimer may hold this part of its share, because the remaining work does not include what other
// claimers hold already.
constexpr double kPart = 0.5;
// No claimer counts as slow before its speed was measured for this long.
constexpr double kLeastSeenUs = 2e6;

}  // namespace

void FairShare::Speed::add(double passed_us, double done_us) {
  const double keeps = std::exp(-passed_us / kMemoryUs);
  work = work * keeps + done_us;
  time = time * keeps + passed_us;
}

void FairShare::worked(double at_us, std::int64_t work_us) {
  if (worked_at_) own_.add(at_us - *worked_at_, static_cast<double>(work_us));
  worked_at_ = at_us;
}

void FairShare::saw(double at_us, std::int64_t left_us) {
  if (saw_at_ && left_us <= left_us_) {
    all_.add(at_us - *saw_at_, static_cast<double>(left_us_ - left_us));
  }
  saw_at_ = at_us;
  left_us_ = left_us;
}

std::int64_t FairShare::most_us() const {
  if (own_.time < kLeastSeenUs || all_.time < kLeastSeenUs || all_.work <= 0) return kAny;
  const double share = (own_.work / own_.time) / (all_.work / all_.time);
  const double most = kPart * share * static_cast<double>(left_us_);
  return most < 1e15 ? static_cast<std::int64_t>(most) : kAny;
}

}  // namespace assay
