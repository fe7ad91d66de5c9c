#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/statistics.h"
#include "base/table.h"
#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

double share(Nanos part, Nanos whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}
Nanos idle(const TimeShare& time, IdleCause cause) {
  return time.idle_by[static_cast<std::size_t>(cause)];
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

}  // namespace

double mean_step(const Analysis& analysis) {
  const auto steps = static_cast<double>(std::max<std::size_t>(1, analysis.steps.size()));
  return millis(analysis.time()) / steps;
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

namespace {

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
          {"idle_by_cause_ns", idle_by},
          {"data_loader_ns", time.loading}};
}

ordered_json to_json(const TimeShare& time, const WorkCounts& counts) {
  ordered_json object{{"kernels", counts.kernels},
                      {"communication_kernels", counts.communication_kernels},
                      {"copies", counts.copies}};
  object.update(to_json(time));
  return object;
}

// Work that no step launched: one line for each device with such work.
std::string outside_lines(const Analysis& analysis) {
  std::string text;
  std::size_t more = 0;
  for (const DeviceReport& device : analysis.devices) {
    const WorkCounts& counts = device.outside_counts;
    if (counts.kernels + counts.copies == 0) continue;
    if (analysis.devices.size() > kMaxDevices) {
      ++more;
      continue;
    }
    const TimeShare& time = device.outside;
    text += fmt::format(
        "{}: outside of steps, {} kernels and {} copies: compute {:.3f} ms, communication {:.3f} "
        "ms, copies alone {:.3f} ms\n",
        device.label, counts.kernels, counts.copies, millis(time.compute),
        millis(time.communication), millis(time.memory));
  }
  if (more > 0)
    text += fmt::format("outside of steps: {} devices have work (see the JSON)\n", more);
  return text;
}

// How long GPUs wait for the data loader.
std::string loader_line(const Analysis& analysis) {
  Nanos span = 0;
  Nanos loading = 0;
  for (const DeviceReport& device : analysis.devices) {
    span += device.total.span;
    loading += device.total.loading;
  }
  if (loading == 0) return {};
  return fmt::format("data loader: {:.2f}% of the time, GPUs wait for it\n", share(loading, span));
}

// The columns of the table of devices, in percent of the device's time.
std::vector<double> columns_of_time(const TimeShare& time) {
  std::vector<double> columns;
  for (const Nanos part : {time.compute, time.exposed_communication(), time.hidden_communication,
                           time.memory, time.idle}) {
    columns.push_back(share(part, time.span));
  }
  for (const IdleCause cause : {IdleCause::fill, IdleCause::drain, IdleCause::dependency,
                                IdleCause::host, IdleCause::queue, IdleCause::device}) {
    columns.push_back(share(idle(time, cause), time.span));
  }
  return columns;
}

void add_row(Table& table, std::string label, const std::vector<double>& columns) {
  std::vector<std::string> row{std::move(label)};
  for (const double percent : columns) row.push_back(fmt::format("{:.2f}", percent));
  table.add(std::move(row));
}

// Many devices: the distribution of each column, the mean of the hosts at both ends, and the
// devices that are farthest from the median in compute or idle time. Returns the number of the far
// ones.
std::string distribution(const Analysis& analysis, std::size_t top, Table& table) {
  std::vector<std::vector<double>> by_column;
  std::map<std::string, std::pair<TimeShare, std::size_t>> hosts;
  for (const DeviceReport& device : analysis.devices) {
    const auto columns = columns_of_time(device.total);
    by_column.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) by_column[i].push_back(columns[i]);
    auto& [sum, count] = hosts[device.machine];
    sum += device.total;
    ++count;
  }
  for (const auto& [label, percent] :
       {std::pair{"min", 0U}, {"median", 50U}, {"p95", 95U}, {"max", 100U}}) {
    std::vector<double> columns;
    columns.reserve(by_column.size());
    for (const auto& values : by_column) columns.push_back(percentile(values, percent));
    add_row(table, label, columns);
  }
  std::vector<std::pair<double, std::string>> order;
  order.reserve(hosts.size());
  for (const auto& [name, host] : hosts) {
    order.emplace_back(share(host.first.compute, host.first.span), name);
  }
  std::ranges::sort(order);
  constexpr std::size_t kEnds = 2;
  for (std::size_t i = 0; i < order.size() && hosts.size() > 1; ++i) {
    if (i >= kEnds && i + kEnds < order.size()) continue;
    const auto& [sum, count] = hosts[order[i].second];
    add_row(table, fmt::format("host {} ({})", order[i].second, count), columns_of_time(sum));
  }
  constexpr std::size_t kCompute = 0;
  constexpr std::size_t kIdle = 4;
  const std::array<std::pair<std::size_t, double>, 2> medians{
      {{kCompute, percentile(by_column[kCompute], 50)}, {kIdle, percentile(by_column[kIdle], 50)}}};
  std::vector<std::pair<double, std::size_t>> far;
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    double distance = 0;
    for (const auto& [column, middle] : medians) {
      distance = std::max(distance, std::abs(by_column[column][i] - middle));
    }
    constexpr double kLeast = 2;  // percent of the time
    if (distance > kLeast) far.emplace_back(distance, i);
  }
  const std::size_t shown = std::min(top, far.size());
  std::ranges::partial_sort(far, far.begin() + static_cast<std::ptrdiff_t>(shown), std::greater{});
  for (std::size_t i = 0; i < shown; ++i) {
    const DeviceReport& device = analysis.devices[far[i].second];
    add_row(table, device.label, columns_of_time(device.total));
  }
  if (far.empty()) return {};
  return fmt::format("{} of {} devices differ from the median by more than 2% of their time\n",
                     far.size(), analysis.devices.size());
}

}  // namespace

std::string analysis_table(const Analysis& analysis, std::size_t top) {
  if (analysis.devices.empty() && analysis.notes.empty()) return {};  // dumps alone
  std::string text = fmt::format("{} steps of {:.3f} ms on average (median {:.3f}), {} devices\n",
                                 analysis.steps.size(), mean_step(analysis),
                                 millis(lower_median(analysis.lengths)), analysis.devices.size());
  Table table({"device (% of time)", ">compute", ">comm", ">hidden", ">memory", ">idle", ">fill",
               ">drain", ">depend", ">host", ">queue", ">device"});
  if (analysis.devices.size() > kMaxDevices) {
    const std::string differ = distribution(analysis, top, table);
    text += table.text() + differ;
  } else {
    for (const DeviceReport& device : analysis.devices) {
      add_row(table, device.label, columns_of_time(device.total));
    }
    text += table.text();
  }
  text += outside_lines(analysis);
  text += loader_line(analysis);
  text += schedule_line(analysis);
  if (analysis.critical_stage) {
    const DeviceReport& critical = analysis.devices[*analysis.critical_stage];
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
                             {"length_ns", analysis.lengths[i]},
                             {"pause_ns", analysis.pauses[i]},
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
    const auto steps = json_list(device.steps, [](const TimeShare& time) { return to_json(time); });
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
    json["pipelines"].push_back(
        json_list(pipeline, [&](std::size_t device) { return analysis.devices[device].label; }));
  }
  if (analysis.critical_stage) {
    json["critical_stage"] = analysis.devices[*analysis.critical_stage].label;
  }
  if (!analysis.slowest_machine.empty()) json["slowest_machine"] = analysis.slowest_machine;
  json["notes"] = analysis.notes;
  std::string text = dumped(json, 1);
  if (!members.empty()) {
    while (text.back() == '}' || text.back() == '\n') text.pop_back();
    text += "," + members + "}";
  }
  return text + "\n";
}

}  // namespace assay::timeline
