// The engine's core under random schedules: each case ends exactly once, and every run ends.
//
//   ASSAY_SEED=7 simulation_test --gtest_filter=Simulation.OneSeed   replays one, step by step
//   ASSAY_SCHEDULES=10000000 simulation_test                         runs so many

#include "simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace assay::testing {
namespace {

TEST(Simulation, EveryCaseEndsOnceAndEveryRunEnds) {
  const std::uint64_t schedules = number_from("ASSAY_SCHEDULES", 100'000);
  const std::uint64_t first = number_from("ASSAY_FIRST_SEED", 0);
  std::uint64_t steps = 0;
  for (std::uint64_t seed = first; seed < first + schedules; ++seed) {
    Simulation simulation(seed);
    const auto wrong = simulation.run();
    steps += simulation.steps();
    ASSERT_FALSE(wrong.has_value()) << *wrong << "\nreplay it: ASSAY_SEED=" << seed
                                    << " simulation_test --gtest_filter=Simulation.OneSeed";
  }
  std::cout << schedules << " schedules, " << steps << " steps\n";
}

// The other claimer has ended two cases without a commit when it goes. The calm session after that
// ends two others, so it is no standstill.
TEST(Simulation, WhatAnotherClaimerLosesIsNoStandstill) {
  EXPECT_EQ(Simulation(84137).run(), std::nullopt);
}

TEST(Simulation, OneSeed) {
  if (std::getenv("ASSAY_SEED") == nullptr) GTEST_SKIP() << "ASSAY_SEED names a seed to replay";
  const auto wrong = Simulation(number_from("ASSAY_SEED", 0), /*trace=*/true).run();
  EXPECT_FALSE(wrong.has_value()) << *wrong;
}

}  // namespace
}  // namespace assay::testing
