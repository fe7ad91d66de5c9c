// The overhead of chains: empty commands (/bin/true), stage by stage, with everything recorded.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "chain/plan/plan.h"
#include "chain/run/runner.h"

namespace {

assay::chain::plan::Plan plan_of(std::size_t count) {
  assay::chain::plan::Plan plan;
  plan.model = plan.mode = "empty";
  plan.folder = "out";
  for (std::size_t i = 0; i < count; ++i) {
    assay::chain::plan::Stage stage;
    stage.index = i;
    stage.name = "stage" + std::to_string(i);
    stage.kind = assay::chain::plan::StageKind::infer;
    stage.command = "true";
    stage.argv = {"true"};
    stage.log = plan.folder + "/" + stage.name + ".log";
    stage.device = "cpu";
    plan.stages.push_back(stage);
  }
  return plan;
}

void run_commands(benchmark::State& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "chain_bench_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no scratch folder");
  std::filesystem::current_path(folder);
  const assay::chain::plan::Plan plan = plan_of(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    std::filesystem::remove_all(plan.folder);
    const auto result = assay::chain::run::run_plan(plan, {});
    if (!result || !result->all_passed()) return state.SkipWithError("a command failed");
  }
  state.counters["per_command"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(state.range(0)),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  std::filesystem::current_path("/");
  std::filesystem::remove_all(folder);
}
BENCHMARK(run_commands)->Arg(100)->Arg(950)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
