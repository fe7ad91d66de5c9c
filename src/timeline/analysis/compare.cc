#include "timeline/analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/statistics.h"
#include "timeline/analysis/report_text.h"
#include "timeline/analysis/reports.h"
#include "timeline/importers/gpu_categories.h"

namespace assay::timeline {
namespace {

using nlohmann::ordered_json;
using Figures = std::map<std::string, double>;

// Without steps that are far from the median: start-up, checkpoints.
std::vector<double> usual_steps(const Analysis& analysis) {
  std::vector<double> steps;
  steps.reserve(analysis.lengths.size());
  for (const Nanos length : analysis.lengths) steps.push_back(millis(length));
  constexpr std::size_t kFewest = 5;
  if (steps.size() < kFewest) return steps;
  const double middle = upper_median(steps);
  std::vector<double> deviations;
  deviations.reserve(steps.size());
  for (const double step : steps) deviations.push_back(std::abs(step - middle));
  const double spread = std::max(upper_median(deviations), 0.01 * middle);
  constexpr double kFar = 6;
  std::erase_if(steps, [&](double step) { return std::abs(step - middle) > kFar * spread; });
  return steps;
}

struct StepSample {
  double mean = 0;
  double error = 0;  // variance of the mean
  double degrees = 0;

  explicit StepSample(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    for (const double value : values) mean += value / n;
    if (values.size() < 2) return;
    degrees = n - 1;
    for (const double value : values) error += (value - mean) * (value - mean) / degrees / n;
  }
};

// The two-sided 95% quantile of Student's distribution (Cornish-Fisher expansion; exact for one and
// two degrees of freedom).
double student(double degrees) {
  if (degrees < 1.5) return 12.706;
  if (degrees < 2.5) return 4.303;
  const double z = 1.959964;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees);
}

StepChange step_change(const Analysis& before, const Analysis& after) {
  StepChange change;
  const StepSample then(usual_steps(before));
  const StepSample now(usual_steps(after));
  change.before = then.mean;
  change.after = now.mean;
  if (then.mean <= 0) return change;
  change.percent = 100 * (now.mean - then.mean) / then.mean;
  if (then.degrees < 1 || now.degrees < 1) return change;
  const double error = then.error + now.error;
  const double degrees =
      error <= 0
          ? then.degrees + now.degrees
          : error * error /
                (then.error * then.error / then.degrees + now.error * now.error / now.degrees);
  const double half = 100 * student(degrees) * std::sqrt(error) / then.mean;
  change.low = change.percent - half;
  change.high = change.percent + half;
  return change;
}

// Steps times devices: what totals are divided by.
double step_parts(const ComparedRun& run) {
  const std::size_t steps = std::max<std::size_t>(1, run.analysis.steps.size());
  return static_cast<double>(steps * std::max<std::size_t>(1, run.analysis.devices.size()));
}

Figures time_shares(const ComparedRun& run) {
  TimeShare sum;
  for (const DeviceReport& device : run.analysis.devices) sum += device.total;
  Figures figures;
  const auto add = [&](const char* name, Nanos time) {
    figures[name] = millis(time) / step_parts(run);
  };
  add("compute", sum.compute);
  add("communication, exposed", sum.exposed_communication());
  add("communication, hidden", sum.hidden_communication);
  Nanos waiting = 0;
  for (const CollectiveCall& call : run.insights.collectives.calls) {
    for (const CollectivePart& part : call.parts) waiting += part.waiting;
  }
  add("communication: waiting for other ranks", waiting);
  add("memory operations", sum.memory);
  add("idle", sum.idle);
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    add(fmt::format("idle: {}", name(static_cast<IdleCause>(i))).c_str(), sum.idle_by[i]);
  }
  add("idle: data loader (part of host)", sum.loading);
  return figures;
}

// By rank, in percent of its time.
Figures by_rank(const ComparedRun& run, Nanos (*part)(const TimeShare&)) {
  Figures figures;
  for (const DeviceReport& device : run.analysis.devices) {
    if (device.total.span <= 0) continue;
    figures[device.label] =
        100 * static_cast<double>(part(device.total)) / static_cast<double>(device.total.span);
  }
  return figures;
}

Figures kernel_figures(const ComparedRun& run, double (*figure)(const KernelRow&)) {
  Figures figures;
  for (const KernelRow& row : run.insights.kernels) {
    figures[row.name] += figure(row) / step_parts(run);
  }
  return figures;
}

// The mean call of each operation, group and size.
Figures collective_times(const ComparedRun& run, bool waiting) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const CollectiveCall& call : run.insights.collectives.calls) {
    auto& [sum, count] = sums[fmt::format("{} {} {} B", call.name, call.group, call.bytes)];
    for (const CollectivePart& part : call.parts) {
      sum += waiting ? millis(part.waiting) / static_cast<double>(call.parts.size()) : 0;
    }
    if (!waiting) sum += millis(call.transfer);
    ++count;
  }
  Figures figures;
  for (const auto& [name, sum] : sums) figures[name] = sum.first / sum.second;
  return figures;
}

// The host's time in each range that the program names.
Figures range_times(const ComparedRun& run) {
  Figures figures;
  for (const Slice& slice : run.trace.slices) {
    const Track& track = run.trace.tracks[slice.track];
    if (track.gpu || track.jobs) continue;
    const std::string_view category = run.trace.strings.text(slice.category);
    if (profiler_event_kind(category) != EventKind::annotation) continue;
    const std::string_view name = run.trace.strings.text(slice.name);
    if (name.starts_with("Profile")) continue;  // steps
    figures[std::string(name)] += millis(slice.end - slice.begin) / step_parts(run);
  }
  return figures;
}

Figures stage_times(const ComparedRun& run) {
  Figures figures;
  for (const auto& pipeline : run.analysis.pipelines) {
    for (std::size_t stage = 0; stage < pipeline.size(); ++stage) {
      const DeviceReport& device = run.analysis.devices[pipeline[stage]];
      figures[fmt::format("stage {}", stage)] +=
          millis(device.total.compute) /
          static_cast<double>(std::max<std::size_t>(1, run.analysis.steps.size()) *
                              run.analysis.pipelines.size());
    }
  }
  return figures;
}

Figures step_times(const ComparedRun& run) {
  Figures figures;
  for (std::size_t i = 0; i < run.analysis.steps.size(); ++i) {
    figures[fmt::format("step {}", run.analysis.steps[i].number)] = millis(run.analysis.lengths[i]);
  }
  return figures;
}

void add_section(Comparison& comparison, std::string title, std::string unit, const Figures& before,
                 const Figures& after) {
  ComparedSection section{std::move(title), std::move(unit), {}};
  for (const auto& [name, value] : before) {
    const auto now = after.find(name);
    section.rows.push_back(
        {name, value, now == after.end() ? std::nullopt : std::optional(now->second)});
  }
  for (const auto& [name, value] : after) {
    if (!before.contains(name)) section.rows.push_back({name, std::nullopt, value});
  }
  std::ranges::stable_sort(section.rows, std::greater{}, [](const ComparedRow& row) {
    return std::abs(row.after.value_or(0) - row.before.value_or(0));
  });
  if (!section.rows.empty()) comparison.sections.push_back(std::move(section));
}

// Culprits of one run that the other does not have or has less, then whether transfers changed.
std::vector<std::string> changes_of(const ComparedRun& before, const ComparedRun& after) {
  std::vector<std::string> lines;
  const auto cost = [](const ComparedRun& run, const Culprit& one) {
    return static_cast<double>(one.excess) * static_cast<double>(one.steps.size()) /
           static_cast<double>(std::max<std::size_t>(1, run.analysis.steps.size()));
  };
  const auto list = [&](const char* only, const char* more, const ComparedRun& run,
                        const ComparedRun& other) {
    for (const Culprit& one : run.insights.culprits) {
      const auto& others = other.insights.culprits;
      const auto same = std::ranges::find_if(others, [&](const Culprit& theirs) {
        return theirs.name == one.name && theirs.part == one.part;
      });
      constexpr double kMuch = 1.25;
      if (same == others.end()) {
        lines.push_back(only + culprit_line(one));
      } else if (cost(run, one) > kMuch * cost(other, *same)) {
        lines.push_back(fmt::format("{}{} (in the other run: {:.3f} ms, {})", more,
                                    culprit_line(one), millis(same->excess), same->when));
      }
    }
  };
  list("new: ", "worse: ", after, before);
  list("gone: ", "better, before: ", before, after);
  double then = 0;
  double now = 0;
  const Figures earlier = collective_times(before, false);
  for (const auto& [name, time] : collective_times(after, false)) {
    const auto same = earlier.find(name);
    if (same == earlier.end()) continue;
    then += same->second;
    now += time;
  }
  constexpr double kAlike = 0.02;
  if (!lines.empty() && then > 0 && std::abs(now - then) < kAlike * then) {
    lines.emplace_back("transfers take as long as before");
  }
  return lines;
}

std::string figure_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string change_text(const StepChange& step) {
  std::string text =
      fmt::format("step: {:.3f} ms -> {:.3f} ms ({:+.2f}%", step.before, step.after, step.percent);
  text += step.low ? fmt::format(", 95% {:+.2f}..{:+.2f}%)", *step.low, *step.high) : ")";
  return text + ": " + step.verdict();
}

// `quote` stands around names.
Table table_of(const ComparedSection& section, const char* quote) {
  Table table(
      {fmt::format("{} ({})", section.title, section.unit), ">before", ">after", ">change"});
  for (const ComparedRow& row : section.rows) {
    std::string name = short_name(row.name);
    std::ranges::replace(name, '|', '/');
    table.row(quote + name + quote, figure_text(row.before), figure_text(row.after),
              row.before && row.after ? fmt::format("{:+.3f}", *row.after - *row.before)
              : row.after             ? "new"
                                      : "gone");
  }
  return table;
}

std::string as_table(const Comparison& comparison) {
  std::string text = change_text(comparison.step) + '\n';
  for (const std::string& line : comparison.changes) text += line + '\n';
  if (comparison.before_schedule != comparison.after_schedule) {
    text += "before: " + comparison.before_schedule + "after:  " + comparison.after_schedule;
  }
  for (const ComparedSection& each : comparison.sections) text += section(table_of(each, ""));
  return text;
}

std::string as_markdown(const Comparison& comparison) {
  std::string text = "**" + change_text(comparison.step) + "**\n";
  for (const std::string& line : comparison.changes) text += "- " + line + '\n';
  for (const ComparedSection& each : comparison.sections) {
    text += '\n' + table_of(each, "`").markdown(kMaxRows);
  }
  return text;
}

std::string as_json(const Comparison& comparison) {
  const auto known = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  const StepChange& step = comparison.step;
  ordered_json root{{"version", 1},
                    {"step",
                     {{"before_ms", step.before},
                      {"after_ms", step.after},
                      {"change_percent", step.percent},
                      {"low_percent", known(step.low)},
                      {"high_percent", known(step.high)},
                      {"verdict", step.verdict()}}},
                    {"changes", comparison.changes},
                    {"sections", ordered_json::array()}};
  for (const ComparedSection& section : comparison.sections) {
    ordered_json rows = ordered_json::array();
    for (const ComparedRow& row : section.rows) {
      rows.push_back(
          {{"name", row.name}, {"before", known(row.before)}, {"after", known(row.after)}});
    }
    root["sections"].push_back({{"title", section.title}, {"unit", section.unit}, {"rows", rows}});
  }
  return dumped(root, 1) + "\n";
}

}  // namespace

std::string StepChange::verdict() const {
  if (!low) return "too few steps to tell a change from chance";
  if (*low > 0) return "slower";
  if (*high < 0) return "faster";
  return "no significant change";
}

bool Comparison::slower(double percent) const {
  return step.percent >= percent && (!step.low || *step.low > 0);
}

Comparison compare(const ComparedRun& before, const ComparedRun& after) {
  Comparison comparison;
  comparison.step = step_change(before.analysis, after.analysis);
  comparison.changes = changes_of(before, after);
  comparison.before_schedule = schedule_line(before.analysis);
  comparison.after_schedule = schedule_line(after.analysis);
  const auto add = [&](std::string title, std::string unit, auto figures) {
    add_section(comparison, std::move(title), std::move(unit), figures(before), figures(after));
  };
  const char* const each = "ms a step and rank";
  add("time", each, time_shares);
  add("kernel or copy", each, [](const auto& run) {
    return kernel_figures(run, [](const KernelRow& row) { return millis(row.total); });
  });
  add("kernel or copy", "calls a step and rank", [](const auto& run) {
    return kernel_figures(run, [](const KernelRow& row) { return static_cast<double>(row.count); });
  });
  add("range", each, range_times);
  add("collective, transfer", "ms a call",
      [](const auto& run) { return collective_times(run, false); });
  add("collective, waiting", "ms a call",
      [](const auto& run) { return collective_times(run, true); });
  add("pipeline stage", "compute, ms a step", stage_times);
  add("rank, compute", "% of time", [](const auto& run) {
    return by_rank(run, [](const TimeShare& time) { return time.compute; });
  });
  add("rank, idle", "% of time", [](const auto& run) {
    return by_rank(run, [](const TimeShare& time) { return time.idle; });
  });
  add("step", "ms", step_times);
  return comparison;
}

std::string comparison_text(const Comparison& comparison, const std::string& format) {
  if (format == "json") return as_json(comparison);
  if (format == "markdown") return as_markdown(comparison);
  return as_table(comparison);
}

}  // namespace assay::timeline
