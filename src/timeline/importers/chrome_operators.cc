#include "timeline/importers/chrome_operators.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json.h"
#include "timeline/importers/builder.h"
#include "timeline/names.h"
#include "timeline/operator_work.h"

namespace assay::timeline {
namespace {

using nlohmann::json;

std::vector<std::string> texts_in(std::string_view text) {
  std::vector<std::string> texts;
  for (const json& one : parse_json(text)) {
    texts.push_back(one.is_string() ? one.get<std::string>() : std::string());
  }
  return texts;
}

// Lists of tensors, scalars and missing arguments have no shape.
std::vector<Shape> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  for (const json& one : parse_json(text)) {
    Shape& shape = shapes.emplace_back();
    if (!one.is_array() || !std::ranges::all_of(one, &json::is_number_integer)) continue;
    for (const json& size : one) shape.push_back(size.get<std::int64_t>());
  }
  return shapes;
}

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

}  // namespace

std::uint32_t OperatorReader::kind_of(const ChromeEvent& event, Trace& trace) {
  if (event.phase != 'X' || !event.name.starts_with("aten::")) return kNoIndex;
  const OperatorFormula* const formula = formula_of(event.name);
  if (formula == nullptr || trace.operator_calls.size() >= kMaxImportedSlices) return kNoIndex;
  std::string key(event.name);
  for (const Arg arg : {Arg::input_dims, Arg::input_types, Arg::input_values}) {
    key.append("\n").append(event.arg(arg));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(key), kNoIndex);
  if (!is_new) return known->second;
  OperatorKind kind;
  kind.name = trace.strings.intern_valid(event.name);
  kind.composite = formula->composite;
  const auto cost = cost_of(
      *formula, {shapes_in(event.arg(Arg::input_dims)), texts_in(event.arg(Arg::input_types)),
                 texts_in(event.arg(Arg::input_values))});
  if (cost) {
    kind.flop = cost->flop;
    kind.bytes = cost->bytes;
  }
  kind.dtype = trace.strings.intern(cost ? cost->dtype : "");
  kind.shapes = trace.strings.intern(cost ? cost->shapes : "");
  trace.operator_kinds.push_back(kind);
  known->second = static_cast<std::uint32_t>(trace.operator_kinds.size() - 1);
  return known->second;
}

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
    counters.flop = leading_number(event.arg(Arg::flop), KernelCounters::kUnknown);
    counters.bytes = leading_number(event.arg(Arg::gigabytes), KernelCounters::kUnknown);
    constexpr double kGiga = 1e9;
    if (counters.bytes > 0) counters.bytes *= kGiga;
  }
  if (counters.flop < 0 && counters.bytes < 0) return;
  counters.kernel = trace.strings.intern_valid(event.name);
  trace.kernel_counters.push_back(counters);
}

}  // namespace assay::timeline
