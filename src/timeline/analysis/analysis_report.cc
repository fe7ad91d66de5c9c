#include "timeline/analysis/analysis_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

double share(Nanos part, Nanos whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}
Nanos idle(const TimeShare& time, IdleCause cause) {
  return time.idle_by[static_cast<std::size_t>(cause)];
}

double mean_step(const Analysis& analysis) {
  Nanos sum = 0;
  for (const Interval& window : analysis.windows) sum += window.end - window.begin;
  return analysis.windows.empty() ? 0 : millis(sum) / static_cast<double>(analysis.windows.size());
}

// The most frequent schedule, with mean bubbles.
Schedule typical_schedule(const Analysis& analysis) {
  std::map<ScheduleKind, std::pair<std::size_t, Schedule>> seen;
  for (const Schedule& schedule : analysis.schedules) {
    auto& [count, sum] = seen[schedule.kind];
    const Schedule before = sum;
    sum = schedule;
    sum.ideal_bubble += before.ideal_bubble;
    sum.measured_bubble += before.measured_bubble;
    ++count;
  }
  if (seen.empty()) return {};
  const auto count_of = [](const auto& entry) { return entry.second.first; };
  auto [count, schedule] = std::ranges::max_element(seen, {}, count_of)->second;
  schedule.ideal_bubble /= static_cast<double>(count);
  schedule.measured_bubble /= static_cast<double>(count);
  return schedule;
}

std::string schedule_line(const Analysis& analysis) {
  const Schedule schedule = typical_schedule(analysis);
  const std::string why = schedule.reason.empty() ? "" : " (" + schedule.reason + ")";
  if (schedule.kind == ScheduleKind::none) {
    return schedule.reason.empty() ? std::string() : fmt::format("schedule: none{}\n", why);
  }
  if (schedule.kind == ScheduleKind::unknown) {
    return fmt::format("schedule: not recognised{}; bubble {:.2f}%\n", why,
                       100 * schedule.measured_bubble);
  }
  if (schedule.stages == 1) {
    return fmt::format("schedule: {}{}; gaps within the stage {:.2f}%\n", name(schedule.kind), why,
                       100 * schedule.measured_bubble);
  }
  const std::string copies =
      schedule.pipelines > 1 ? fmt::format("{} pipelines of ", schedule.pipelines) : "";
  return fmt::format(
      "schedule: {}, {}{} stages, {} micro batches, {} chunks a stage; bubble {:.2f}%, ideal "
      "{:.2f}%\n",
      name(schedule.kind), copies, schedule.stages, schedule.micro_batches, schedule.chunks,
      100 * schedule.measured_bubble, 100 * schedule.ideal_bubble);
}

ordered_json to_json(const TimeShare& time) {
  ordered_json idle_by;
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    idle_by[std::string(name(static_cast<IdleCause>(i)))] = time.idle_by[i];
  }
  return {{"span_ns", time.span},
          {"compute_ns", time.compute},
          {"communication_ns", time.communication},
          {"hidden_communication_ns", time.hidden_communication},
          {"memory_ns", time.memory},
          {"exposed_memory_ns", time.memory},
          {"idle_ns", time.idle},
          {"other_steps_ns", time.other_steps},
          {"idle_by_cause_ns", idle_by}};
}

ordered_json to_json(const TimeShare& time, const WorkCounts& counts) {
  ordered_json object{{"kernels", counts.kernels},
                      {"communication_kernels", counts.communication_kernels},
                      {"copies", counts.copies}};
  object.update(to_json(time));
  return object;
}

// null for an unknown number.
ordered_json known(std::int64_t number) {
  return number == kNone ? ordered_json() : ordered_json(number);
}

// Work that no step launched: one line for each device with such work.
std::string outside_lines(const Analysis& analysis) {
  std::string text;
  for (const DeviceReport& device : analysis.devices) {
    const WorkCounts& counts = device.outside_counts;
    if (counts.kernels + counts.copies == 0) continue;
    const TimeShare& time = device.outside;
    text += fmt::format(
        "{}: outside of steps, {} kernels and {} copies: compute {:.3f} ms, communication {:.3f} "
        "ms, copies alone {:.3f} ms\n",
        device.label, counts.kernels, counts.copies, millis(time.compute),
        millis(time.communication), millis(time.memory));
  }
  return text;
}

}  // namespace

std::string analysis_table(const Analysis& analysis) {
  std::string text =
      fmt::format("{} steps of {:.3f} ms on average, {} devices\n", analysis.steps.size(),
                  mean_step(analysis), analysis.devices.size());
  text += fmt::format("{:<22}{:>9}{:>9}{:>9}{:>9}{:>9} |{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n",
                      "device (% of time)", "compute", "comm", "hidden", "memory", "idle", "fill",
                      "drain", "depend", "host", "queue", "device");
  for (const DeviceReport& device : analysis.devices) {
    const TimeShare& time = device.total;
    text += fmt::format("{:<22}", device.label);
    for (const Nanos part : {time.compute, time.exposed_communication(), time.hidden_communication,
                             time.memory, time.idle}) {
      text += fmt::format("{:>9.2f}", share(part, time.span));
    }
    text += " |";
    for (const IdleCause cause : {IdleCause::fill, IdleCause::drain, IdleCause::dependency,
                                  IdleCause::host, IdleCause::queue, IdleCause::device}) {
      text += fmt::format("{:>8.2f}", share(idle(time, cause), time.span));
    }
    text += '\n';
  }
  text += outside_lines(analysis);
  text += schedule_line(analysis);
  if (analysis.devices.size() > 1) {
    const DeviceReport& critical = analysis.devices[analysis.critical_stage];
    text += fmt::format("critical stage: {} (computes {:.3f} ms a step)\n", critical.label,
                        millis(critical.total.compute) /
                            static_cast<double>(std::max<std::size_t>(1, analysis.steps.size())));
  }
  if (!analysis.slowest_machine.empty()) {
    text += fmt::format("slowest machine: {}\n", analysis.slowest_machine);
  }
  for (const std::string& note : analysis.notes) text += note + '\n';
  return text;
}

std::string analysis_json(const Analysis& analysis, const std::string& members) {
  ordered_json json{
      {"version", 1}, {"steps", ordered_json::array()}, {"devices", ordered_json::array()}};
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    const Step& step = analysis.steps[i];
    const Schedule& schedule = analysis.schedules[i];
    json["steps"].push_back({{"number", step.number},
                             {"begin_ns", step.begin},
                             {"end_ns", step.end},
                             {"schedule", name(schedule.kind)},
                             {"stages", schedule.stages},
                             {"pipelines", schedule.pipelines},
                             {"micro_batches", schedule.micro_batches},
                             {"chunks", schedule.chunks},
                             {"bubble", schedule.measured_bubble},
                             {"ideal_bubble", schedule.ideal_bubble},
                             {"schedule_reason", schedule.reason}});
  }
  for (const DeviceReport& device : analysis.devices) {
    ordered_json steps = ordered_json::array();
    for (const TimeShare& time : device.steps) steps.push_back(to_json(time));
    json["devices"].push_back({{"label", device.label},
                               {"rank", known(device.rank)},
                               {"machine", device.machine},
                               {"process", known(device.pid)},
                               {"device", known(device.number)},
                               {"whole", to_json(device.whole, device.counts)},
                               {"outside_steps", to_json(device.outside, device.outside_counts)},
                               {"total", to_json(device.total)},
                               {"steps", steps}});
  }
  for (const auto& pipeline : analysis.pipelines) {
    ordered_json labels = ordered_json::array();
    for (const std::size_t device : pipeline) labels.push_back(analysis.devices[device].label);
    json["pipelines"].push_back(labels);
  }
  if (analysis.devices.size() > 1) {
    json["critical_stage"] = analysis.devices[analysis.critical_stage].label;
  }
  if (!analysis.slowest_machine.empty()) json["slowest_machine"] = analysis.slowest_machine;
  json["notes"] = analysis.notes;
  std::string text = json.dump(1, ' ', false, ordered_json::error_handler_t::replace);
  if (!members.empty()) {
    while (text.back() == '}' || text.back() == '\n') text.pop_back();
    text += "," + members + "}";
  }
  return text + "\n";
}

namespace {

// Ranks identify devices across runs; processes and machines differ.
bool same_place(const DeviceReport& a, const DeviceReport& b) {
  if (a.rank != kNone && b.rank != kNone) return a.rank == b.rank && a.number == b.number;
  return a.number == b.number && (a.number != kNone || a.label == b.label) &&
         a.machine == b.machine;
}

// Compares steps of equal number, the largest change first; empty with fewer than two common steps.
std::string step_changes(const Analysis& before, const Analysis& after) {
  struct Change {
    std::int64_t step;
    Nanos then;
    Nanos now;
  };
  std::map<std::int64_t, Nanos> then;
  for (std::size_t i = 0; i < before.steps.size(); ++i) {
    then[before.steps[i].number] = before.windows[i].end - before.windows[i].begin;
  }
  std::vector<Change> changes;
  for (std::size_t i = 0; i < after.steps.size(); ++i) {
    const auto same = then.find(after.steps[i].number);
    if (same == then.end()) continue;
    changes.push_back({same->first, same->second, after.windows[i].end - after.windows[i].begin});
  }
  if (changes.size() < 2) return {};
  std::ranges::stable_sort(changes, std::greater{},
                           [](const Change& change) { return std::abs(change.now - change.then); });
  constexpr std::size_t kMaxRows = 10;
  std::string text = fmt::format("{:<22}{:>22}{:>18}\n", "step (ms)", "time", "change");
  for (std::size_t i = 0; i < changes.size() && i < kMaxRows; ++i) {
    const Change& change = changes[i];
    text += fmt::format("{:<22}{:>22}{:>+18.3f}\n", change.step,
                        fmt::format("{:.3f} -> {:.3f}", millis(change.then), millis(change.now)),
                        millis(change.now - change.then));
  }
  if (changes.size() > kMaxRows)
    text += fmt::format("({} more steps)\n", changes.size() - kMaxRows);
  return text;
}

}  // namespace

std::string comparison_table(const Analysis& before, const Analysis& after) {
  const double old_step = mean_step(before);
  const double new_step = mean_step(after);
  std::string text = fmt::format("step: {:.3f} ms -> {:.3f} ms ({:+.2f}%)\n", old_step, new_step,
                                 old_step > 0 ? 100 * (new_step - old_step) / old_step : 0);
  text += "before: " + schedule_line(before) + "after:  " + schedule_line(after);
  text +=
      fmt::format("{:<22}{:>18}{:>18}{:>18}\n", "device (% of time)", "compute", "comm", "idle");
  for (const DeviceReport& now : after.devices) {
    const auto then = std::ranges::find_if(
        before.devices, [&](const auto& device) { return same_place(device, now); });
    if (then == before.devices.end()) {
      text += fmt::format("{:<22} only after\n", now.label);
      continue;
    }
    const auto pair = [&](Nanos old_part, Nanos new_part) {
      return fmt::format("{:.2f} -> {:.2f}", share(old_part, then->total.span),
                         share(new_part, now.total.span));
    };
    text += fmt::format(
        "{:<22}{:>18}{:>18}{:>18}\n", now.label, pair(then->total.compute, now.total.compute),
        pair(then->total.exposed_communication(), now.total.exposed_communication()),
        pair(then->total.idle, now.total.idle));
  }
  for (const DeviceReport& old : before.devices) {
    if (std::ranges::none_of(after.devices,
                             [&](const auto& device) { return same_place(old, device); })) {
      text += fmt::format("{:<22} only before\n", old.label);
    }
  }
  text += step_changes(before, after);
  return text;
}

}  // namespace assay::timeline
