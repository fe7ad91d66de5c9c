#include "timeline/analysis/pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/text.h"
#include "timeline/intervals.h"

namespace assay::timeline {
namespace {

using Devices = std::vector<std::size_t>;
using MicroBatch = std::pair<std::int32_t, std::int32_t>;  // number, chunk

// The times of each micro batch on a device, over all parts of a pass.
struct Passes {
  std::map<MicroBatch, Span> forward, backward;

  explicit Passes(const StageJobs& jobs) {
    for (const PipelineJob& job : jobs) {
      if (job.pass == Pass::weight) continue;
      auto& passes = job.pass == Pass::forward ? forward : backward;
      widen(passes[{job.micro_batch, job.chunk}], job);
    }
  }
};

// Whether two devices end the same forwards at the same time. Begins are weaker evidence, because a
// stage may wait for its input within the forward.
bool at_once(const Passes& a, const Passes& b) {
  std::size_t both = 0;
  std::size_t together = 0;
  for (const auto& [micro_batch, mine] : a.forward) {
    const auto other = b.forward.find(micro_batch);
    if (other == b.forward.end()) continue;
    ++both;
    const Nanos apart = std::abs(mine.end - other->second.end);
    const Nanos shorter = std::min(mine.end - mine.begin, other->second.end - other->second.begin);
    if (2 * apart < shorter) ++together;
  }
  return both > 0 && 2 * together > both;
}

std::vector<Devices> stages_of(std::span<const Passes> passes) {
  std::vector<Devices> stages;
  for (std::size_t device = 0; device < passes.size(); ++device) {
    const auto same = std::ranges::find_if(stages, [&](const Devices& stage) {
      return at_once(passes[stage.front()], passes[device]);
    });
    if (same == stages.end()) {
      stages.push_back({device});
    } else {
      same->push_back(device);
    }
  }
  return stages;
}

// The share of micro batches whose forward passes through the devices in order and whose backward
// returns.
double flows_through(std::span<const Passes> passes, const Devices& devices, bool logs) {
  std::size_t seen = 0;
  std::size_t good = 0;
  const Passes& first = passes[devices.front()];
  const Passes& last = passes[devices.back()];
  for (const auto& [micro_batch, interval] : first.forward) {
    std::vector<Nanos> ends;
    for (const std::size_t device : devices) {
      const auto pass = passes[device].forward.find(micro_batch);
      if (pass != passes[device].forward.end()) ends.push_back(pass->second.end);
    }
    if (ends.size() != devices.size()) continue;
    ++seen;
    const bool down = std::ranges::is_sorted(ends);
    if (!down && !std::is_sorted(ends.rbegin(), ends.rend())) continue;
    const auto out = first.backward.find(micro_batch);
    const auto in = last.backward.find(micro_batch);
    // One rank that is always late also orders the forwards, so require backwards, except for
    // pipeline logs.
    const bool both = out != first.backward.end() && in != last.backward.end();
    if (both ? (in->second.end <= out->second.end) == down : logs) ++good;
  }
  return seen == 0 ? 0 : static_cast<double>(good) / static_cast<double>(seen);
}

constexpr double kProof = 0.8;  // of the micro batches prove an order

Pipelines across(std::span<const Passes> passes, const std::vector<Devices>& stages, bool logs) {
  Pipelines result;
  double worst = 1;
  for (std::size_t copy = 0; copy < stages.front().size(); ++copy) {
    Devices pipeline;
    for (const Devices& stage : stages) pipeline.push_back(stage[copy]);
    worst = std::min(worst, flows_through(passes, pipeline, logs));
    result.devices.push_back(std::move(pipeline));
  }
  if (worst >= kProof) return result;
  return {{},
          fmt::format("only {:.0f}% of the micro batches pass through the devices in the order of "
                      "pipeline stages",
                      100 * worst)};
}

// Orders stages by the end of the first common forward.
void order_by_time(std::span<const Passes> passes, std::vector<Devices>& stages) {
  for (const auto& [micro_batch, interval] : passes[stages.front().front()].forward) {
    const auto end_at = [&](const Devices& stage) -> std::optional<Nanos> {
      const auto pass = passes[stage.front()].forward.find(micro_batch);
      if (pass == passes[stage.front()].forward.end()) return std::nullopt;
      return pass->second.end;
    };
    if (!std::all_of(stages.begin(), stages.end(), end_at)) continue;
    std::ranges::stable_sort(
        stages, [&](const Devices& a, const Devices& b) { return *end_at(a) < *end_at(b); });
    return;
  }
}

// A group has its ranks in ascending order. The stages may have another one, if micro batches pass
// through them so.
void order_group(std::span<const Passes> passes, Devices& pipeline, bool logs) {
  if (flows_through(passes, pipeline, logs) >= kProof) return;
  std::vector<Devices> stages;
  for (const std::size_t device : pipeline) stages.push_back({device});
  order_by_time(passes, stages);
  Devices ordered;
  for (const Devices& stage : stages) ordered.push_back(stage.front());
  if (flows_through(passes, ordered, logs) >= kProof) pipeline = std::move(ordered);
}

Pipelines by_time(std::span<const Passes> passes, bool logs) {
  std::vector<Devices> stages = stages_of(passes);
  if (stages.size() == 1) {
    return {{}, "all devices run the same forwards at the same time: they are copies of one stage"};
  }
  if (std::ranges::any_of(
          stages, [&](const Devices& stage) { return stage.size() != stages.front().size(); })) {
    return {{}, "the stages have different numbers of devices"};
  }
  Pipelines as_given = across(passes, stages, logs);
  if (!as_given.devices.empty()) return as_given;
  order_by_time(passes, stages);
  Pipelines by_begin = across(passes, stages, logs);
  return by_begin.devices.empty() ? as_given : by_begin;
}

// Empty unless the groups assign every device to a pipeline.
std::vector<Devices> by_groups(std::span<const StageDevice> devices,
                               std::span<const std::vector<std::int32_t>> groups) {
  std::map<std::int32_t, std::size_t> of_rank;
  for (std::size_t i = 0; i < devices.size(); ++i) of_rank[devices[i].rank] = i;
  if (of_rank.size() != devices.size() || of_rank.contains(kNone)) return {};
  std::vector<Devices> pipelines;
  std::set<std::size_t> placed;
  for (const auto& ranks : groups) {
    Devices pipeline;
    for (const std::int32_t rank : ranks) {
      const auto device = of_rank.find(rank);
      if (device == of_rank.end()) continue;
      if (!placed.insert(device->second).second) return {};
      pipeline.push_back(device->second);
    }
    if (!pipeline.empty()) pipelines.push_back(std::move(pipeline));
  }
  return placed.size() == devices.size() ? pipelines : std::vector<Devices>();
}

}  // namespace

Pipelines find_pipelines(std::span<const StageDevice> devices,
                         std::span<const std::vector<std::int32_t>> groups, bool logs) {
  Devices all(devices.size());
  std::iota(all.begin(), all.end(), 0U);
  const bool some_idle =
      std::ranges::any_of(devices, [](const StageDevice& device) { return device.jobs.empty(); });
  // recognise_schedule() reports the reason.
  if (devices.size() < 2 || some_idle) return {{std::move(all)}, ""};
  std::vector<Passes> passes;
  for (const StageDevice& device : devices) passes.emplace_back(device.jobs);
  auto pipelines = by_groups(devices, groups);
  if (pipelines.empty()) return by_time(passes, logs);
  for (Devices& pipeline : pipelines) order_group(passes, pipeline, logs);
  return {std::move(pipelines), ""};
}

std::vector<std::vector<std::int32_t>> pipeline_groups(std::span<const Source> sources) {
  std::set<std::vector<std::int32_t>> groups;
  for (const Source& source : sources) {
    for (const auto& [name, group] : source.groups) {
      const std::string said = lowered(group.description);
      const bool pipeline = said.find("pipeline") != std::string::npos || said == "pp" ||
                            said.ends_with("_pp") || said.starts_with("pp_");
      if (pipeline && group.ranks.size() > 1) groups.insert(group.ranks);
    }
  }
  return {groups.begin(), groups.end()};
}

}  // namespace assay::timeline
