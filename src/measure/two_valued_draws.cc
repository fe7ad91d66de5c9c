#include "measure/two_valued_draws.h"

#include <algorithm>
#include <limits>

namespace assay {

double slack_of(double resolution) { return std::min(0.01, 1e-4 + 16 * resolution); }

Choice::Choice(double share, double resolution) : slack_(slack_of(resolution)), dependence_(share) {
  measured_.share = share;
}

void Choice::note_outside(std::uint64_t index, double value) {
  if (measured_.outside++ == 0) {
    measured_.first_outside = index;
    measured_.first_value = value;
  }
}

void Choice::add(std::span<const double> drawn, const DrawNumbers& values,
                 const DrawNumbers& others, const DrawNumbers& groups) {
  const bool zeros = others.values.empty() && others.number == 0 && groups.values.empty();
  const std::uint64_t first = measured_.count;
  if (zeros) add_with_zeros(drawn, values);
  for (std::size_t i = 0; !zeros && i < drawn.size(); ++i) {
    const double x = drawn[i];
    const double value = values.at(i);
    const double other = others.at(i);
    // A value that is not finite gives NaN when it is multiplied by a mask of 0, so it decides
    // nothing; nor do two equal values.
    if (!std::isfinite(value) || !std::isfinite(other)) continue;
    // The zeros that dropout leaves are exact, so even a tiny value can be distinguished from them.
    const bool is_other =
        other == 0 ? x == 0 : near(x, other, slack_) && std::abs(x - other) < std::abs(x - value);
    if (!is_other && !near(x, value, slack_)) {
      note_outside(first + i, x);
      continue;
    }
    const double apart = other == 0 ? 0 : 2 * slack_ * (1 + std::abs(value));
    if (!(std::abs(value - other) > apart)) continue;
    ++measured_.draws;
    measured_.kept += is_other ? 0 : 1;
    if (groups.values.empty()) {
      dependence_.add(!is_other);
      continue;
    }
    const auto group = static_cast<std::size_t>(groups.at(i));
    if (group >= fates_.size())
      fates_.resize(group + 1);  // group numbers are below the number of elements
    const Fate fate = is_other ? Fate::fallen : Fate::kept;
    if (fates_[group] == Fate::unknown) fates_[group] = fate;
    if (fates_[group] != fate) note_outside(first + i, x);
  }
  measured_.count += drawn.size();
}

// add() for the case that all dropped values are zero. It has no branch that depends on a draw,
// because such a branch cannot be predicted.
void Choice::add_with_zeros(std::span<const double> drawn, const DrawNumbers& values) {
  std::span<std::uint8_t> room = dependence_.room(drawn.size());
  std::size_t told = 0;
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const double x = drawn[i];
    const double value = values.at(i);
    const bool finite = std::abs(value) <= std::numeric_limits<double>::max();
    const bool is_zero = x == 0;
    const bool possible =
        is_zero | (x == value) | (std::abs(x - value) <= slack_ * (1 + std::abs(value)));
    if (finite & !possible) [[unlikely]] {
      note_outside(measured_.count + i, x);
    }
    const bool tells = finite & possible & (value != 0);
    room[told] = is_zero ? 0 : 1;
    told += tells ? 1 : 0;
    kept += (tells & !is_zero) ? 1 : 0;
  }
  dependence_.keep(told);
  measured_.draws += told;
  measured_.kept += kept;
}

DrawMeasurement Choice::finish() const {
  DrawMeasurement measured = measured_;
  measured.independent = fates_.size();
  const DependenceFound found = dependence_.run();
  measured.correlation = found.correlation;
  measured.lag = found.lag;
  measured.pairs = found.pairs;
  return measured;
}

}  // namespace assay
