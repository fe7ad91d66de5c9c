// The overhead of chains: parsing, planning a matrix of 950 cells, and running empty commands
// (/bin/true) stage by stage with everything recorded.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "chain/params/params.h"
#include "chain/plan/make_plan.h"
#include "chain/plan/plan.h"
#include "chain/run/runner.h"

namespace {

// A long-layout file whose whole_infer matrix has 950 inference cells on the CPU: 95 thread counts
// times 10 batch sizes.
std::string wide_params() {
  const auto numbers = [](int count) {
    std::string list = "1";
    for (int i = 2; i <= count; ++i) list += "|" + std::to_string(i);
    return list;
  };
  return "===train_params===\nmodel_name:wide\npython:true\ngpu_list:-1\nuse_gpu:False\nauto_cast:"
         "null\n"
         "epoch:null\nsave_dir:./"
         "o\nbatch:null\npretrained:null\ntrain_model_name:latest\nimg_dir:./i\n"
         "null:null\n##\ntrainer:norm_train\nnorm_train:train.py\npact_train:null\nfpgm_train:"
         "null\n"
         "distill_train:null\nnull:null\nnull:null\n##\n===eval_params===\neval:null\nnull:null\n##"
         "\n"
         "===infer_params===\nsave_dir:./"
         "o\nweights:\nnorm_export:null\nquant_export:null\nfpgm_export:null\n"
         "distill_export:null\nexport1:null\nexport2:null\ninference_dir:null\ninfer_model:./m\n"
         "infer_export:null\ninfer_quant:False\ninference:infer.py\n--use_gpu:False\n--enable_"
         "mkldnn:False\n"
         "--cpu_threads:" +
         numbers(95) + "\n--batch:" + numbers(10) +
         "\n--use_tensorrt:False\n--precision:fp32\n--model_dir:\n--image_dir:./i\nnull:null\n"
         "--benchmark:True\nnull:null\n";
}

void parse_and_plan_950_cells(benchmark::State& state) {
  const std::string text = wide_params();
  std::size_t cells = 0;
  for (auto _ : state) {
    const assay::chain::params::ParsedParams parsed = assay::chain::params::parse_params(text);
    const auto plan = assay::chain::plan::make_plan(parsed.params, "whole_infer", {});
    cells = plan ? plan->stages.size() : 0;
  }
  state.counters["cells"] = static_cast<double>(cells);
}
BENCHMARK(parse_and_plan_950_cells)->Unit(benchmark::kMillisecond);

void run_commands(benchmark::State& state) {
  std::string folder = (std::filesystem::temp_directory_path() / "chain_bench_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no scratch folder");
  std::filesystem::current_path(folder);
  const assay::chain::params::ParsedParams parsed =
      assay::chain::params::parse_params(wide_params());
  const auto whole = assay::chain::plan::make_plan(parsed.params, "whole_infer", {});
  if (!whole) return state.SkipWithError("no plan");
  assay::chain::plan::Plan plan = *whole;
  plan.stages.resize(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    std::filesystem::remove_all("test_tipc");
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
