// The real Session over a simulated system: it never waits for what may not come, each session
// ends, each case ends once, and no descriptor is left.
//
//   ASSAY_FIRST_SEED=7 ASSAY_SCHEDULES=1 shell_simulation_test   replays one
//   ASSAY_SCHEDULES=1000000 shell_simulation_test                runs so many, or what fits into
//   ASSAY_SECONDS

#include "shell_simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace assay::testing {
namespace {

TEST(ShellSimulation, EveryCaseEndsOnceAndEverySessionEnds) {
  std::string folder = std::filesystem::temp_directory_path() / "assay-shell-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directories(std::filesystem::path(folder) / "lanes");
  const std::uint64_t schedules = number_from("ASSAY_SCHEDULES", 4'000);
  const std::uint64_t first = number_from("ASSAY_FIRST_SEED", 0);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(number_from("ASSAY_SECONDS", 100'000));
  std::uint64_t calls = 0;
  std::uint64_t seed = first;
  for (; seed < first + schedules && std::chrono::steady_clock::now() < until; ++seed) {
    ShellSimulation simulation(seed, folder);
    const auto wrong = simulation.run();
    calls += simulation.calls();
    EXPECT_FALSE(wrong.has_value())
        << *wrong << "\nreplay it: ASSAY_SCHEDULES=1 ASSAY_FIRST_SEED=" << seed
        << " shell_simulation_test";
    if (wrong) break;
  }
  std::cout << seed - first << " schedules, " << calls << " system calls\n";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay::testing
