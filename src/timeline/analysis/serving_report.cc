#include "timeline/analysis/serving_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "timeline/analysis/report_text.h"
#include "timeline/analysis/slice_steps.h"

namespace assay::timeline {

std::vector<ServingPhase> serving_phases(const Trace& trace, const Analysis& analysis) {
  const auto& batches = trace.batches;
  std::map<std::string_view, ServingPhase> phases;
  std::vector<ServingPhase*> phase_of(analysis.steps.size());
  const auto devices = static_cast<Nanos>(std::max<std::size_t>(1, analysis.devices.size()));
  for (std::size_t i = 0; i < analysis.steps.size() && !batches.empty(); ++i) {
    const auto batch = batches.find(analysis.steps[i].number);
    if (batch == batches.end()) continue;
    ServingPhase& phase = phases[batch->second.phase];
    phase_of[i] = &phase;
    ++phase.steps;
    for (const auto& [sum, one] : {std::pair{&phase.requests, batch->second.requests},
                                   {&phase.prefill_tokens, batch->second.prefill_tokens},
                                   {&phase.decode_tokens, batch->second.decode_tokens}}) {
      *sum = *sum == kNone || one == kNone ? kNone : *sum + one;
    }
    phase.time += analysis.lengths[i];
    for (const DeviceReport& device : analysis.devices) {
      phase.busy += (device.steps[i].span - device.steps[i].idle) / devices;
      phase.waiting += (device.late[i].launches + device.late[i].loading) / devices;
    }
  }
  const SliceSteps steps(trace, analysis);
  for (const Slice& slice : trace.slices) {
    if (batches.empty() || !trace.tracks[slice.track].gpu || !is_gpu_work(slice.kind)) continue;
    const auto step = steps.of(slice, slice.begin);
    if (!step || phase_of[*step] == nullptr || trace.tracks[slice.track].jobs) continue;
    ++phase_of[*step]->kernels;
    const Launch* launch = trace.launch_of(slice);
    if (launch == nullptr) continue;
    const std::string_view call = trace.strings.text(launch->name);
    if (call.find("GraphLaunch") != std::string_view::npos) ++phase_of[*step]->of_graphs;
  }
  std::vector<ServingPhase> result;
  for (auto& [name, phase] : phases) {
    phase.name = name;
    result.push_back(std::move(phase));
  }
  return result;
}

std::string serving_advice(const std::vector<ServingPhase>& phases,
                           const std::vector<KernelRow>& kernels) {
  const bool told = std::ranges::none_of(
      phases, [](const ServingPhase& phase) { return phase.name == ServingBatch::kUnknown; });
  const bool serves = std::ranges::any_of(kernels, [](const KernelRow& row) {
    const std::string name = lowered(row.name);
    return std::ranges::any_of(std::array{"paged", "kvcache", "kv_cache", "reshape_and_cache"},
                               [&](const char* word) { return name.find(word) != name.npos; });
  });
  if (told && !(serves && phases.empty())) return {};
  return "inference: nothing in the trace tells prefill from decode in some or all batches; newer "
         "vLLM and SGLang record a range for each batch (execute_context_…, step[…])\n";
}

std::string serving_table(const std::vector<ServingPhase>& phases) {
  Table table({"inference", ">steps", ">requests:.1f", ">prompt:.1f", ">decoded:.1f", ">ms a step",
               ">tokens/s:.0f", ">GPU %:.2f", ">waiting ms", ">kernels:.1f", ">by graphs:.1f"});
  for (const ServingPhase& phase : phases) {
    const auto steps = static_cast<double>(phase.steps);
    const auto time = static_cast<double>(std::max<Nanos>(1, phase.time));
    const auto mean = [&](auto sum) { return static_cast<double>(sum) / steps; };
    const auto mean_if_known = [&](std::int64_t sum) { return if_known(sum != kNone, mean(sum)); };
    const std::int64_t tokens = phase.prefill_tokens + phase.decode_tokens;
    const bool counted = phase.prefill_tokens != kNone && phase.decode_tokens != kNone;
    table.row(phase.name, phase.steps, mean_if_known(phase.requests),
              mean_if_known(phase.prefill_tokens), mean_if_known(phase.decode_tokens),
              mean(phase.time) / 1e6, if_known(counted, static_cast<double>(tokens) / time * 1e9),
              100 * static_cast<double>(phase.busy) / time, mean(phase.waiting) / 1e6,
              mean(phase.kernels), mean(phase.of_graphs));
  }
  return section(table);
}

nlohmann::ordered_json serving_json(const std::vector<ServingPhase>& phases) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const ServingPhase& phase : phases) {
    array.push_back({{"phase", phase.name},
                     {"steps", phase.steps},
                     {"requests", known(phase.requests)},
                     {"prefill_tokens", known(phase.prefill_tokens)},
                     {"decode_tokens", known(phase.decode_tokens)},
                     {"time_ns", phase.time},
                     {"busy_ns", phase.busy},
                     {"waiting_for_host_ns", phase.waiting},
                     {"kernels", phase.kernels},
                     {"kernels_of_graphs", phase.of_graphs}});
  }
  return array;
}

}  // namespace assay::timeline
