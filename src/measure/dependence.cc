#include "measure/dependence.h"

#include <algorithm>
#include <cmath>

namespace assay {

Dependence::Found Dependence::run() const {
  Found found;
  const auto look = [&](std::size_t count, std::size_t lag) {
    const std::size_t pairs = count - lag;
    if (pairs < kFewestPairs) return;
    double sum = 0;
    for (std::size_t i = 0; i < pairs; ++i) sum += draws_[i] * draws_[i + lag];
    const double correlation = std::abs(sum) / (most_ * std::sqrt(static_cast<double>(pairs)));
    if (correlation > found.correlation || found.pairs == 0) found = {correlation, lag, pairs};
  };
  const std::size_t first = std::min(draws_.size(), kNeighbours);
  for (std::size_t lag = 1; lag <= first / 2; ++lag) look(first, lag);
  if (const std::size_t half = draws_.size() / 2; half > first / 2) look(draws_.size(), half);
  return found;
}

}  // namespace assay
