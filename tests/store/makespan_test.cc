// Workers of unequal speed end at about the same time.

#include "makespan.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::made_costs;
using testing::makespan_over_ideal;
using testing::plan_of;
using testing::speeds_of;

constexpr std::size_t kWorkers = 64;

// A million cases are cut as they come, 100,000 are sorted first.
TEST(Makespan, IsNearTheIdealWithUnequalWorkers) {
  for (const std::size_t cases : {std::size_t{1'000'000}, std::size_t{100'000}}) {
    const auto plan = plan_of(made_costs(cases, 1), 0.3, 2);
    // A hundred thousand cases are 79 s for each worker.
    EXPECT_LT(makespan_over_ideal(plan, speeds_of(kWorkers, 0.2, 3)), 1.02) << cases;
    EXPECT_LT(makespan_over_ideal(plan, speeds_of(kWorkers, 0.4, 3)), 1.03) << cases;
  }
}

TEST(Makespan, IsTheIdealForOneWorker) {
  const auto plan = plan_of(made_costs(1000, 1), 0.3, 2);
  EXPECT_NEAR(makespan_over_ideal(plan, {0.7}), 1, 1e-9);
}

// Computed by hand: two bundles of 1 s on workers of speed 1 and 0.5 take 2 s; the ideal is 4/3 s.
TEST(Makespan, IsThatOfTheSlowerOfTwo) {
  testing::SimulatedPlan plan;
  plan.cases = {{1'000'000, 1'000'000}, {1'000'000, 1'000'000}};
  plan.bundle_us = 1'000'000;
  plan.least_bundles = 1;
  EXPECT_NEAR(makespan_over_ideal(plan, {1, 0.5}), 1.5, 1e-9);
}

}  // namespace
}  // namespace assay
