#include "store/visit_pace.h"

#include <algorithm>

namespace assay {
namespace {

constexpr double kTimesAsLong = 100;  // ratio of the interval and a visit
// Weights of a new visit in the smoothed duration: rise fast, fall slowly.
constexpr double kOfSlower = 0.3;
constexpr double kOfQuicker = 0.03;
constexpr double kSmallestPart = 0.7;  // of the interval, which is randomized from here to 1

}  // namespace

void VisitPace::took(Milliseconds visit) {
  visit_ += (visit > visit_ ? kOfSlower : kOfQuicker) * (visit - visit_);
  part_ = std::uniform_real_distribution<double>(kSmallestPart, 1)(random_);
}

std::chrono::milliseconds VisitPace::between_visits() const {
  const auto wanted = std::min<Milliseconds>(kTimesAsLong * visit_, rarest_) * part_;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max<Milliseconds>(wanted, usual_));
}

}  // namespace assay
