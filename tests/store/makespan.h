#pragma once

// How long workers of unequal speed take for a plan that the database hands out, simulated: with
// the bundles that are really cut, and claims as an engine of one slot makes them.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

#include "store/bundles.h"

namespace assay::testing {

struct SimulatedCase {
  std::int64_t expected_us = 0;
  double takes_us = 0;  // at speed 1
};

struct SimulatedPlan {
  std::vector<SimulatedCase> cases;
  std::size_t sorted = 100'000;  // plans of so many cases are sorted before they are cut
  std::int64_t bundle_us = 2'000'000;
  std::int64_t least_bundles = 256;
};

// What cases really take swings about what they are expected to take.
inline SimulatedPlan plan_of(const std::vector<std::int64_t>& expected_us, double swing,
                             std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> factor(0, swing);
  SimulatedPlan plan;
  for (const std::int64_t us : expected_us) {
    plan.cases.push_back({us, static_cast<double>(us) * factor(random)});
  }
  return plan;
}

// From 1 to 100 ms, all equally likely.
inline std::vector<std::int64_t> made_costs(std::size_t cases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> costs(cases);
  for (std::int64_t& each : costs) each = 1'000 + static_cast<std::int64_t>(random() % 99'001);
  return costs;
}

inline std::vector<double> speeds_of(std::size_t workers, double spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> speed(1, spread);
  std::vector<double> speeds(workers);
  for (double& each : speeds) each = std::max(0.1, speed(random));
  return speeds;
}

struct HandedOut {
  std::int64_t dearest_us = 0;
  double takes_us = 0;
};

// The bundles of a plan in the order in which they are claimed.
inline std::vector<HandedOut> bundles_of(SimulatedPlan plan) {
  const std::int64_t all =
      std::accumulate(plan.cases.begin(), plan.cases.end(), std::int64_t{0},
                      [](std::int64_t sum, const SimulatedCase& c) { return sum + c.expected_us; });
  BundleCutter cutter(
      0, std::min(plan.bundle_us, (all + plan.least_bundles - 1) / plan.least_bundles));
  const bool sorted = plan.cases.size() <= plan.sorted;
  if (sorted) {
    std::stable_sort(plan.cases.begin(), plan.cases.end(),
                     [](const auto& a, const auto& b) { return a.expected_us > b.expected_us; });
  }
  std::vector<HandedOut> bundles;
  for (const SimulatedCase& each : plan.cases) {
    const auto number = static_cast<std::size_t>(sorted ? cutter.place_sorted(each.expected_us)
                                                        : cutter.place(each.expected_us));
    if (bundles.size() <= number) bundles.resize(number + 1);
    bundles[number].takes_us += each.takes_us;
    bundles[number].dearest_us = std::max(bundles[number].dearest_us, each.expected_us);
  }
  std::stable_sort(bundles.begin(), bundles.end(),
                   [](const auto& a, const auto& b) { return a.dearest_us > b.dearest_us; });
  return bundles;
}

// The time until all is done, in times of the ideal: all speeds together, and no worker ever idle.
// A worker claims when it holds less than a second of work.
inline double makespan_over_ideal(const SimulatedPlan& plan, const std::vector<double>& speeds) {
  constexpr double kLowUs = 1'000'000;
  using Claim = std::pair<double, std::size_t>;  // when, and who
  std::priority_queue<Claim, std::vector<Claim>, std::greater<>> next;
  std::vector<double> busy_until(speeds.size());
  for (std::size_t worker = 0; worker < speeds.size(); ++worker) next.emplace(0, worker);
  double all = 0;
  for (const HandedOut& bundle : bundles_of(plan)) {
    const auto [now, worker] = next.top();
    next.pop();
    all += bundle.takes_us;
    double& until = busy_until[worker];
    until = std::max(until, now) + bundle.takes_us / speeds[worker];
    next.emplace(std::max(now, until - kLowUs / speeds[worker]), worker);
  }
  const double speed = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  return *std::max_element(busy_until.begin(), busy_until.end()) / (all / speed);
}

}  // namespace assay::testing
