#include "timeline/importers/chrome_counters.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "timeline/importers/builder.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

struct CountedEvent {
  std::string_view name;
  double weight;
};

// Executed thread instructions; a fused multiply-add counts as two operations.
constexpr std::array<CountedEvent, 10> kFlop{{
    {"kineto__cuda_core_flops", 1},
    {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2},
    {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2},
    {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", 1},
    {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 2},
}};
constexpr std::array<CountedEvent, 3> kBytes{
    {{"dram__bytes.sum", 1}, {"dram__bytes_read.sum", 1}, {"dram__bytes_write.sum", 1}}};

// The weighted sum; kUnknown without any of the metrics.
double sum_of(const json& args, std::span<const CountedEvent> metrics) {
  double sum = 0;
  bool any = false;
  for (const CountedEvent& metric : metrics) {
    const auto found = args.find(metric.name);
    if (found == args.end() || !found->is_number()) continue;
    sum += metric.weight * found->get<double>();
    any = true;
  }
  return any ? sum : KernelCounters::kUnknown;
}

double number_in(std::string_view text) {
  double value = KernelCounters::kUnknown;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

bool counts_kernel(const ChromeEvent& event) { return event.category == "cuda_profiler_range"; }

void add_counters(const ChromeEvent& event, Trace& trace) {
  if (trace.kernel_counters.size() >= kMaxImportedSlices) return;
  KernelCounters counters;
  if (counts_kernel(event)) {
    const json args = parse_json(event.args_text);
    if (!args.is_object()) return;
    counters.flop = sum_of(args, kFlop);
    counters.bytes = sum_of(args, kBytes);
  } else {
    counters.flop = number_in(event.arg(Arg::flop));
    counters.bytes = number_in(event.arg(Arg::gigabytes));
    constexpr double kGiga = 1e9;
    if (counters.bytes > 0) counters.bytes *= kGiga;
  }
  if (counters.flop < 0 && counters.bytes < 0) return;
  counters.kernel = trace.strings.intern_valid(event.name);
  trace.kernel_counters.push_back(counters);
}

}  // namespace assay::timeline
