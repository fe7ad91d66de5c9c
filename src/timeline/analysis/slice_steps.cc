#include "timeline/analysis/slice_steps.h"

#include <algorithm>

namespace assay::timeline {

StepsOfSources::StepsOfSources(const Trace& trace) : steps_(trace.sources.size()) {
  for (const RankStep& mark : trace.rank_steps) {
    if (mark.source < steps_.size()) steps_[mark.source].push_back(mark.step);
  }
  for (auto& steps : steps_) std::ranges::sort(steps, {}, &Step::begin);
}

const std::vector<Step>& StepsOfSources::of(std::uint32_t source) const {
  static const std::vector<Step> kNothing;
  return source < steps_.size() ? steps_[source] : kNothing;
}

std::int64_t StepsOfSources::at(std::uint32_t source, Nanos time) const {
  const auto& steps = of(source);
  const auto behind = std::ranges::upper_bound(steps, time, {}, &Step::begin);
  if (behind == steps.begin() || time >= std::prev(behind)->end) return kNone;
  return std::prev(behind)->number;
}

std::int64_t StepsOfSources::begun(std::uint32_t source, Nanos time) const {
  const auto behind = std::ranges::upper_bound(of(source), time, {}, &Step::begin);
  return behind == of(source).begin() ? kNone : std::prev(behind)->number;
}

SliceSteps::SliceSteps(const Trace& trace, const Analysis& analysis)
    : trace_(trace), analysis_(analysis), marks_(trace) {
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    by_number_.try_emplace(analysis.steps[i].number, i);
  }
}

std::optional<std::size_t> SliceSteps::of_host(std::uint32_t source, Nanos time) const {
  const auto step = by_number_.find(marks_.begun(source, time));
  return step == by_number_.end() ? std::nullopt : std::optional(step->second);
}

std::optional<std::size_t> SliceSteps::of(const Slice& slice, Nanos time) const {
  if (const Launch* launch = trace_.launch_of(slice)) {
    const std::uint32_t source = trace_.tracks[launch->track].source;
    if (marks_.any(source)) {
      const auto step = by_number_.find(marks_.at(source, launch->begin));
      if (step != by_number_.end()) return step->second;
    }
  }
  const auto after = std::ranges::upper_bound(analysis_.windows, time, {}, &Interval::begin);
  if (after == analysis_.windows.begin() || time >= std::prev(after)->end) return std::nullopt;
  return static_cast<std::size_t>(after - analysis_.windows.begin()) - 1;
}

}  // namespace assay::timeline
