#include "measure/groups.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "measure/dependence.h"

namespace assay {
namespace {

constexpr double kGroups = 16;
// ln(2 / 1e-10), shared by all groups of both ways to group, and by their sums of squares.
const double kGroupLog = 23.719 + std::log(2 * kGroups + 2);
// Generators need not use all bits of the dtype: at least 22 bits of u, and a quarter of its
// values.
constexpr double kFinest = 0x1p-22;
constexpr double kCoarser = 4;

// The count of rare events with this mean that is reached at most once in 10^10 cases (Chernoff).
double rare_count(double mean) {
  double count = std::ceil(mean) + 1;
  while (count * std::log(count / mean) - count + mean < kGroupLog) ++count;
  return count;
}

struct Group {
  double count = 0;
  double sum = 0;
  double resolution = 0;
  double from = INFINITY;
};

}  // namespace

template <typename GroupOf>
void Groups::look(DrawMeasurement& measured, const GroupOf& group_of) const {
  std::array<Group, static_cast<std::size_t>(kGroups)> groups;
  for (const Draw& draw : draws_) {
    Group& group =
        groups[static_cast<std::size_t>(std::clamp(group_of(draw.parameter), 0.0, kGroups - 1))];
    ++group.count;
    group.sum += draw.centred;
    group.resolution += draw.resolution;
    group.from = std::min(group.from, draw.parameter);
  }
  double squares = 0;
  Group farthest;
  double most = 0;
  for (const Group& group : groups) {
    if (group.count == 0) continue;
    const double scale = std::sqrt(12 / group.count);
    const double z = std::max(0.0, std::abs(group.sum) - group.resolution) * scale;
    squares += z * z;
    if (z <= most) continue;
    most = z;
    farthest = group;
  }
  const double of_all = kGroups + 2 * std::sqrt(kGroups * kGroupLog) + 2 * kGroupLog;
  const double share = std::max(most / std::sqrt(2 * kGroupLog), std::sqrt(squares / of_all));
  if (share <= measured.group) return;
  measured.group = share;
  measured.group_from = farthest.from;
}

void Groups::finish(DrawMeasurement& measured) const {
  if (draws_.empty()) return;
  const auto [least, greatest] =
      std::minmax_element(draws_.begin(), draws_.end(),
                          [](const Draw& a, const Draw& b) { return a.parameter < b.parameter; });
  const double low = least->parameter;
  const double width = (greatest->parameter - low) / kGroups;
  if (!(width > 0) || !std::isfinite(width)) return;
  look(measured, [&](double parameter) { return (parameter - low) / width; });
  look(measured,
       [](double parameter) { return parameter == 0 ? 0 : kGroups / 2 + std::ilogb(parameter); });
}

void EqualDraws::add(double draw, double resolution) {
  if (draws_.size() == kNeighbours) return;
  draws_.push_back(draw);
  moved_ += resolution;
}

void EqualDraws::finish(DrawMeasurement& measured, std::span<const std::size_t> rows) {
  const auto n = static_cast<double>(draws_.size());
  if (n < 2) return;
  // A draw moves past two cells of its dtype, and has one of them.
  const double chance = std::max(kCoarser * moved_ / n / 2, kFinest);
  for (const std::size_t row : rows) {
    if (row == 0 || row >= draws_.size()) continue;
    std::uint64_t pairs = 0;
    for (std::size_t i = row; i < draws_.size(); ++i) pairs += draws_[i] == draws_[i - row];
    const double allowed = rare_count(static_cast<double>(draws_.size() - row) * chance);
    if (static_cast<double>(pairs) <= allowed) continue;
    measured.equal_pairs = pairs;
    measured.equal_pairs_allowed = allowed;
    return;
  }
  std::sort(draws_.begin(), draws_.end());
  std::uint64_t run = 0;
  for (std::size_t i = 1; i < draws_.size(); ++i) {
    run = draws_[i] == draws_[i - 1] ? run + 1 : 0;
    measured.equal_pairs += run;
  }
  measured.equal_pairs_allowed = rare_count(n * (n - 1) / 2 * chance);
}

}  // namespace assay
