// How the core spreads cases over its slots.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <random>
#include <utility>

#include "engine/core.h"
#include "queued.h"

namespace assay {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Cases that one supervisor holds are out of reach for others' slots.
TEST(Core, TakesNoMoreThanItsSlotsCanDoInAFewSeconds) {
  CoreConfig config;
  config.lease_ms = 30'000;
  Core core(config, Queue({kNoLimit, 0, 0}));
  core.begin();
  std::uint64_t claimed = 0;
  const auto expensive = [&] {
    wire::JobT made = queued(++claimed);
    made.test_case.work_us = 5'000'000;
    return made;
  };
  std::size_t sent = 0;
  for (std::int64_t now_ms = 0; now_ms < 3'000; now_ms += 100) {
    while (auto action = core.next_action()) {
      if (std::holds_alternative<SendLease>(*action)) ++sent;
      if (!std::holds_alternative<ClaimCases>(*action)) continue;
      core.add(expensive());
      core.claimed(Supply::more);
    }
    core.tick(now_ms);
  }
  EXPECT_EQ(sent, 1U);
  EXPECT_EQ(claimed, 2U);  // the running case and the next one
}

// Time at which all cases have ended, on slots that take the expected time for each case.
double makespan_us(std::size_t slots, const MemoryBudget& budget,
                   const std::vector<wire::JobT>& cases) {
  CoreConfig config;
  config.slots = slots;
  Core core(config, Queue(budget));
  struct Running {
    std::deque<wire::JobT> held;
    double free_at = 0;  // time at which its first case ends, if it has one
  };
  std::vector<Running> running(slots);
  double now = 0;
  const auto act = [&] {
    while (auto action = core.next_action()) {
      if (std::holds_alternative<ClaimCases>(*action)) {
        for (const wire::JobT& each : cases) core.add(each);
        core.claimed(Supply::none);
      }
      const auto* lease = std::get_if<SendLease>(&*action);
      if (lease == nullptr) continue;
      Running& slot = running[lease->slot];
      if (slot.held.empty()) {
        slot.free_at = now + static_cast<double>(lease->cases.front().test_case.work_us);
      }
      slot.held.insert(slot.held.end(), lease->cases.begin(), lease->cases.end());
    }
  };
  core.begin();
  act();
  while (core.stop_reason() == StopReason::none) {
    const auto next =
        std::min_element(running.begin(), running.end(), [](const Running& a, const Running& b) {
          return std::pair(a.held.empty(), a.free_at) < std::pair(b.held.empty(), b.free_at);
        });
    if (next->held.empty()) return std::numeric_limits<double>::infinity();
    now = next->free_at;
    Judged answer{queued(next->held.front().test_case.id)};
    answer.verdict.outcome = Outcome::pass;
    next->held.pop_front();
    if (!next->held.empty()) {
      next->free_at = now + static_cast<double>(next->held.front().test_case.work_us);
    }
    core.slot_answered(static_cast<std::size_t>(next - running.begin()), {answer});
    act();
  }
  return now;
}

// Times like those of a corpus: most cases take a moment, few a minute. Some of the longest fit no
// budget, and run one after another.
TEST(Core, ARunEndsWithItsLongestCasesOrWithAllSlotsAtOnce) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> times(0, 3);
    std::vector<wire::JobT> cases;
    std::uint64_t all_us = 0;
    for (std::uint64_t id = 1; id <= 2000; ++id) {
      wire::JobT made = queued(id);
      made.test_case.work_us = 1000 + static_cast<std::uint64_t>(1000 * times(random));
      made.test_case.elements = made.test_case.work_us * 50;
      all_us += made.test_case.work_us;
      cases.push_back(made);
    }
    std::sort(cases.begin(), cases.end(),
              [](auto& a, auto& b) { return a.test_case.work_us > b.test_case.work_us; });
    std::uint64_t alone_us = 0;  // of cases that fit no budget
    std::size_t alone = 0;
    for (const std::size_t many : {1, 5, 50}) {
      for (; alone < many; ++alone) {
        cases[alone].test_case.bytes = kNoLimit;
        alone_us += cases[alone].test_case.work_us;
      }
      for (const std::uint64_t slots : {2, 3, 8}) {
        const std::uint64_t least = std::max(alone_us, all_us / slots);
        EXPECT_LE(makespan_us(slots, {1 << 20, 0, 0}, cases),
                  static_cast<double>(least) +
                      0.05 * static_cast<double>(all_us - cases.front().test_case.work_us))
            << "seed " << seed << ", " << many << " alone, " << slots << " slots";
      }
    }
  }
}

// Many cases that run one after another take as long as all others together, so they cannot wait
// for those.
TEST(Core, WhatFitsNoBudgetDoesNotWaitForAllElse) {
  std::vector<wire::JobT> cases;
  double all_us = 0;
  for (std::uint64_t id = 1; id <= 1100; ++id) {
    wire::JobT made = queued(id);
    made.test_case.work_us = id <= 1000 ? 100'000 : 1'000'000;
    if (id > 1000) made.test_case.bytes = kNoLimit;
    all_us += static_cast<double>(made.test_case.work_us);
    cases.push_back(made);
  }
  EXPECT_LE(makespan_us(2, {1 << 20, 0, 0}, cases), 100e6 + 0.05 * all_us);
}

}  // namespace
}  // namespace assay
