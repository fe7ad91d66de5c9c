#include "timeline/analysis_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/markup.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;

double share(Nanos part, Nanos whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}
double millis(Nanos time) { return static_cast<double>(time) / 1e6; }

Nanos idle(const TimeShare& time, IdleCause cause) {
  return time.idle_by[static_cast<std::size_t>(cause)];
}

double mean_step(const Analysis& analysis) {
  Nanos sum = 0;
  for (const Step& step : analysis.steps) sum += step.end - step.begin;
  return analysis.steps.empty() ? 0 : millis(sum) / static_cast<double>(analysis.steps.size());
}

// The schedule that most steps follow, with its mean bubbles.
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
  auto [count, schedule] =
      std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) {
        return a.second.first < b.second.first;
      })->second;
  schedule.ideal_bubble /= static_cast<double>(count);
  schedule.measured_bubble /= static_cast<double>(count);
  return schedule;
}

std::string schedule_line(const Analysis& analysis) {
  const Schedule schedule = typical_schedule(analysis);
  if (schedule.kind == ScheduleKind::none) return {};
  if (schedule.kind == ScheduleKind::unknown) {
    return fmt::format("schedule: not recognised; bubble {:.2f}%\n",
                       100 * schedule.measured_bubble);
  }
  return fmt::format(
      "schedule: {}, {} stages, {} micro batches, {} chunks a stage; bubble {:.2f}%, ideal "
      "{:.2f}%\n",
      name(schedule.kind), schedule.stages, schedule.micro_batches, schedule.chunks,
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
  ordered_json json{{"kernels", counts.kernels},
                    {"communication_kernels", counts.communication_kernels},
                    {"copies", counts.copies}};
  json.update(to_json(time));
  return json;
}

// null, where it is not known.
ordered_json known(std::int64_t number) {
  return number == kNone ? ordered_json() : ordered_json(number);
}

std::string_view fill_of(const Trace& trace, const Slice& slice) {
  const std::string_view category = trace.strings.text(slice.category);
  if (category.starts_with("forward")) return "#7ec894";
  if (category.starts_with("backward_w")) return "#8fb4e8";
  if (category.starts_with("backward")) return "#ee8e00";
  if (category.starts_with("optimizer")) return "#b07cc6";
  switch (slice.kind) {
    case Kind::compute:
      return "#5b9bd5";
    case Kind::communication:
      return "#d9534f";
    case Kind::memory:
      return "#c9a227";
    case Kind::host:
    case Kind::other:
      return "#bbbbbb";
  }
  return "#bbbbbb";
}

// Rows of GPU tracks over the span of the steps.
std::string drawing(const Analysis& analysis, const Trace& trace) {
  constexpr double kWidth = 1600;
  constexpr double kRow = 22;
  constexpr double kLabel = 150;
  constexpr double kThinnest = 0.2;
  constexpr std::size_t kMaxRects = 40'000;
  if (analysis.steps.empty()) return {};
  Step span;
  for (const Step& step : analysis.steps) {
    span.begin = std::min(span.begin, step.begin);
    span.end = std::max(span.end, step.end);
  }
  const double scale = kWidth / static_cast<double>(std::max<Nanos>(1, span.end - span.begin));
  std::vector<double> rows(trace.tracks.size(), -1);
  std::string svg;
  double y = kRow;
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    if (!trace.tracks[i].gpu) continue;
    rows[i] = y;
    svg += fmt::format("<text x=\"0\" y=\"{:.0f}\">{}</text>\n", y + 14,
                       escape_markup(trace.tracks[i].label));
    y += kRow;
  }
  for (const Step& step : analysis.steps) {
    const double x = kLabel + static_cast<double>(step.begin - span.begin) * scale;
    svg += fmt::format(
        "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"{1:.0f}\"/><text x=\"{2:.2f}\" "
        "y=\"14\">step {3}</text>\n",
        x, y, x + 3, step.number);
  }
  std::size_t drawn = 0;
  std::size_t thin = 0;
  for (const Slice& slice : trace.slices) {
    if (rows[slice.track] < 0 || slice.begin > span.end || slice.end < span.begin) continue;
    const double width = static_cast<double>(slice.end - slice.begin) * scale;
    if (width < kThinnest || drawn == kMaxRects) {
      ++thin;
      continue;
    }
    ++drawn;
    const std::string job = slice.job == kNone ? "" : fmt::format("_{}", slice.job);
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"18\" fill=\"{}\">"
        "<title>{}{} {:.3f} ms</title></rect>\n",
        kLabel + static_cast<double>(slice.begin - span.begin) * scale, rows[slice.track], width,
        fill_of(trace, slice), escape_markup(trace.strings.text(slice.name)), job,
        millis(slice.end - slice.begin));
  }
  return fmt::format(
      "<svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n{2}</svg>\n"
      "<p>{3} slices drawn, {4} too thin to see.</p>\n",
      kWidth + kLabel, y + 4, svg, drawn, thin);
}

}  // namespace

namespace {

// What no step launched, a line for each device that has such work.
std::string outside_lines(const Analysis& analysis) {
  std::string text;
  for (const DeviceReport& device : analysis.devices) {
    const WorkCounts& counts = device.outside_counts;
    if (counts.kernels + counts.copies == 0) continue;
    const TimeShare& time = device.outside;
    text += fmt::format(
        "{}: no step launched {} kernels and {} copies: compute {:.3f} ms, communication {:.3f} "
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
  text +=
      fmt::format("{:<22}{:>9}{:>9}{:>9}{:>9}{:>9} |{:>8}{:>8}{:>8}{:>8}{:>8}\n",
                  "device (% of time)", "compute", "comm", "hidden", "memory", "idle", "fill",
                  "drain", "depend", "host", "device");
  for (const DeviceReport& device : analysis.devices) {
    const TimeShare& time = device.total;
    text += fmt::format(
        "{:<22}{:>9.2f}{:>9.2f}{:>9.2f}{:>9.2f}{:>9.2f} |{:>8.2f}{:>8.2f}{:>8.2f}{:>8.2f}{:>8.2f}"
        "\n",
        device.label, share(time.compute, time.span),
        share(time.exposed_communication(), time.span), share(time.hidden_communication, time.span),
        share(time.memory, time.span), share(time.idle, time.span),
        share(idle(time, IdleCause::fill), time.span),
        share(idle(time, IdleCause::drain), time.span),
        share(idle(time, IdleCause::dependency), time.span),
        share(idle(time, IdleCause::host), time.span),
        share(idle(time, IdleCause::device), time.span));
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

std::string analysis_json(const Analysis& analysis) {
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
                             {"micro_batches", schedule.micro_batches},
                             {"chunks", schedule.chunks},
                             {"bubble", schedule.measured_bubble},
                             {"ideal_bubble", schedule.ideal_bubble}});
  }
  for (const DeviceReport& device : analysis.devices) {
    ordered_json steps = ordered_json::array();
    for (const TimeShare& time : device.steps) steps.push_back(to_json(time));
    json["devices"].push_back(
        {{"label", device.label},
         {"rank", known(device.rank)},
         {"machine", device.machine},
         {"process", known(device.pid)},
         {"device", known(device.number)},
         {"whole", to_json(device.whole, device.counts)},
         {"outside_steps", to_json(device.outside, device.outside_counts)},
         {"total", to_json(device.total)},
         {"steps", steps}});
  }
  if (analysis.devices.size() > 1) {
    json["critical_stage"] = analysis.devices[analysis.critical_stage].label;
  }
  if (!analysis.slowest_machine.empty()) json["slowest_machine"] = analysis.slowest_machine;
  json["notes"] = analysis.notes;
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string analysis_html(const Analysis& analysis, const Trace& trace) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>assay "
      "timeline</title>\n"
      "<style>body{{font-family:sans-serif;margin:1em}}pre{{overflow-x:auto}}svg "
      "text{{font-size:12px}}"
      "svg line{{stroke:#999;stroke-dasharray:3}}.t{{overflow-x:auto}}</style></head><body>\n"
      "<h1>Timeline</h1>\n<div class=\"t\">{}</div>\n<pre>{}</pre>\n</body></html>\n",
      drawing(analysis, trace), escape_markup(analysis_table(analysis)));
}

namespace {

// Two runs have other processes and may have other machines: a rank is the same one in both.
bool same_place(const DeviceReport& a, const DeviceReport& b) {
  if (a.rank != kNone && b.rank != kNone) return a.rank == b.rank && a.number == b.number;
  return a.number == b.number && (a.number != kNone || a.label == b.label) &&
         a.machine == b.machine;
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
    const auto then =
        std::find_if(before.devices.begin(), before.devices.end(),
                     [&](const auto& device) { return same_place(device, now); });
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
    if (std::none_of(after.devices.begin(), after.devices.end(), [&](const auto& device) {
          return same_place(old, device);
        })) {
      text += fmt::format("{:<22} only before\n", old.label);
    }
  }
  return text;
}

}  // namespace assay::timeline
