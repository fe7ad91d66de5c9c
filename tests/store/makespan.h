#pragma once

// Simulates how long workers of unequal speed take for a plan in a database. Uses the real bundles,
// and claims as an engine with one slot does.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

#include "store/bundles.h"
#include "store/fair_share.h"

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

// The real time of a case varies around its expected time.
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
  std::int64_t work_us = 0;  // expected
  std::int64_t left_us = 0;  // likewise, of it and of all after it
  double takes_us = 0;
};

// The bundles of a plan in the order in which they are claimed.
inline std::vector<HandedOut> bundles_of(SimulatedPlan plan) {
  const std::int64_t all =
      std::accumulate(plan.cases.begin(), plan.cases.end(), std::int64_t{0},
                      [](std::int64_t sum, const SimulatedCase& c) { return sum + c.expected_us; });
  const bool sorted = plan.cases.size() <= plan.sorted;
  BundleCutter cutter(0,
                      std::min(plan.bundle_us, (all + plan.least_bundles - 1) / plan.least_bundles),
                      sorted ? all : 0);
  if (sorted) {
    std::stable_sort(plan.cases.begin(), plan.cases.end(),
                     [](const auto& a, const auto& b) { return a.expected_us > b.expected_us; });
  }
  std::map<std::int64_t, double> takes_us;
  for (const SimulatedCase& each : plan.cases) {
    takes_us[sorted ? cutter.place_sorted(each.expected_us) : cutter.place(each.expected_us)] +=
        each.takes_us;
  }
  std::vector<HandedOut> bundles;
  for (const CutBundle& each : cutter.in_order()) {
    bundles.push_back({each.work_us, each.left_us, takes_us.at(each.number)});
  }
  return bundles;
}

struct Makespan {
  double over_ideal = 0;  // the time until all is done, in times of the ideal
  std::size_t claims = 0;
};

// The ideal: all workers together, never idle. A worker claims when it holds less than a second of
// work.
inline Makespan makespan_of(const SimulatedPlan& plan, const std::vector<double>& speeds) {
  constexpr double kLowUs = 1'000'000;
  constexpr double kAgainUs = 1'000'000;
  struct Taken {
    double from = 0;
    double until = 0;
    std::int64_t work_us = 0;
  };
  struct Worker {
    double busy_until = 0;
    FairShare share;
    std::deque<Taken> taken;
    std::int64_t ended_us = 0;  // expected work of the cases that have ended
    std::int64_t taken_us = 0;
    std::int64_t told_us = 0;  // of them, to its share

    // Cases are short: a bundle is done bit by bit.
    std::int64_t done_us(double now) {
      for (; !taken.empty() && taken.front().until <= now; taken.pop_front()) {
        ended_us += taken.front().work_us;
      }
      if (taken.empty() || taken.front().from >= now) return ended_us;
      const Taken& at = taken.front();
      return ended_us + static_cast<std::int64_t>(static_cast<double>(at.work_us) *
                                                  (now - at.from) / (at.until - at.from));
    }
  };
  using Claim = std::pair<double, std::size_t>;  // when, and who
  std::priority_queue<Claim, std::vector<Claim>, std::greater<>> next;
  std::vector<Worker> workers(speeds.size());
  for (std::size_t worker = 0; worker < speeds.size(); ++worker) next.emplace(0, worker);
  std::vector<HandedOut> bundles = bundles_of(plan);
  std::list<HandedOut> left(bundles.begin(), bundles.end());
  double all = 0;
  Makespan made;
  while (!left.empty()) {
    const auto [now, number] = next.top();
    next.pop();
    Worker& worker = workers[number];
    const std::int64_t done_us = worker.done_us(now);
    const std::int64_t held_us = worker.taken_us - done_us;
    worker.share.worked(now, done_us - worker.told_us);
    worker.told_us = done_us;
    const std::int64_t most_us = worker.share.most_us();
    auto chosen = left.begin();
    if (most_us != FairShare::kAny) {
      chosen = std::find_if(left.begin(), left.end(), [&](const HandedOut& bundle) {
        return bundle.work_us <= most_us - held_us;
      });
      if (chosen == left.end() && held_us > 0) {
        next.emplace(std::min(now + kAgainUs, std::max(worker.busy_until, now)), number);
        continue;
      }
      if (chosen == left.end()) --chosen;  // the smallest
    }
    ++made.claims;
    worker.share.saw(now, left.front().left_us);
    all += chosen->takes_us;
    const double from = std::max(worker.busy_until, now);
    worker.busy_until = from + chosen->takes_us / speeds[number];
    worker.taken.push_back({from, worker.busy_until, chosen->work_us});
    worker.taken_us += chosen->work_us;
    next.emplace(std::max(now, worker.busy_until - kLowUs / speeds[number]), number);
    left.erase(chosen);
  }
  double end = 0;
  for (const Worker& each : workers) end = std::max(end, each.busy_until);
  const double speed = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  made.over_ideal = end / (all / speed);
  return made;
}

inline double makespan_over_ideal(const SimulatedPlan& plan, const std::vector<double>& speeds) {
  return makespan_of(plan, speeds).over_ideal;
}

}  // namespace assay::testing
