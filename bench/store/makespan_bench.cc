// How near workers of unequal speed come to the ideal, simulated. Without ASSAY_BENCH_RUN (a run's
// folder, or postgresql://…) cases take 1 to 100 ms; with it, what they took there.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "../../tests/store/makespan.h"
#include "schedule/cost.h"
#include "store/open_store.h"
#include "wire/frame.h"

namespace assay {
namespace {

Result<std::vector<std::int64_t>> recorded_costs(const char* run) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(run, StoreMode::read));
  std::vector<std::int64_t> costs;
  ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) -> Status {
    std::uint64_t us = finished.took_us;
    if (us == 0 && !finished.record.empty()) {
      const auto record = wire::open<wire::Record>(finished.record);
      if (record) us = measured_work_us(**record);
    }
    if (us > 0) costs.push_back(static_cast<std::int64_t>(us));
    return {};
  }));
  return costs;
}

// Arguments: workers, spread of their speeds and swing of what cases take, both in percent, and how
// often the costs are repeated.
void Makespan(benchmark::State& state) {
  const char* run = std::getenv("ASSAY_BENCH_RUN");
  std::vector<std::int64_t> costs;
  if (run != nullptr) {
    auto recorded = recorded_costs(run);
    if (!recorded) return state.SkipWithError(recorded.error().message.c_str());
    const auto times = static_cast<std::size_t>(state.range(3));
    for (std::size_t i = 0; i < times; ++i) {
      costs.insert(costs.end(), recorded->begin(), recorded->end());
    }
  } else {
    costs = testing::made_costs(1'000'000, 1);
  }
  double worst = 0;
  std::size_t claims = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto plan = testing::plan_of(costs, static_cast<double>(state.range(2)) / 100, seed);
      const auto speeds = testing::speeds_of(static_cast<std::size_t>(state.range(0)),
                                             static_cast<double>(state.range(1)) / 100, seed);
      const testing::Makespan made = testing::makespan_of(plan, speeds);
      worst = std::max(worst, made.over_ideal);
      claims = std::max(claims, made.claims);
    }
  }
  double all = 0;
  for (const std::int64_t each : costs) all += static_cast<double>(each);
  state.counters["cases"] = static_cast<double>(costs.size());
  state.counters["work_s_a_worker"] = all / 1e6 / static_cast<double>(state.range(0));
  state.counters["claims"] = static_cast<double>(claims);
  state.counters["worst_over_ideal"] = worst;
}
BENCHMARK(Makespan)
    ->ArgNames({"workers", "speed_spread", "cost_swing", "times"})
    ->Args({64, 0, 0, 500})
    ->Args({64, 20, 0, 500})
    ->Args({64, 20, 30, 500})
    ->Args({64, 40, 30, 500})
    ->Args({64, 0, 0, 62})
    ->Args({64, 20, 0, 62})
    ->Args({64, 20, 30, 62})
    ->Args({64, 40, 30, 62})
    ->Args({64, 20, 30, 25})
    ->Args({64, 40, 30, 25})
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
