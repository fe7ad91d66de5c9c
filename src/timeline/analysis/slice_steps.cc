#include "timeline/analysis/slice_steps.h"

#include <algorithm>

namespace assay::timeline {

namespace {

// The last of the steps, which are by begin, that began by then; null without one.
const Step* last_begun(const std::vector<Step>& steps, Nanos time) {
  const auto behind = std::ranges::upper_bound(steps, time, {}, &Step::begin);
  return behind == steps.begin() ? nullptr : &*std::prev(behind);
}

std::int64_t number_of(const Step* step) { return step == nullptr ? kNone : step->number; }

}  // namespace

StepsOfSources::StepsOfSources(const Trace& trace)
    : steps_(trace.sources.size()), common_(trace.steps) {
  for (const RankStep& mark : trace.rank_steps) {
    if (mark.source < steps_.size()) steps_[mark.source].push_back(mark.step);
  }
  for (auto& steps : steps_) std::ranges::sort(steps, {}, &Step::begin);
  std::ranges::sort(common_, {}, &Step::begin);
}

const std::vector<Step>& StepsOfSources::of(std::uint32_t source) const {
  static const std::vector<Step> kNothing;
  return source < steps_.size() ? steps_[source] : kNothing;
}

std::int64_t StepsOfSources::at(std::uint32_t source, Nanos time) const {
  const Step* const step = last_begun(of(source), time);
  return step != nullptr && time < step->end ? step->number : kNone;
}

std::int64_t StepsOfSources::begun(std::uint32_t source, Nanos time) const {
  return number_of(last_begun(of(source), time));
}

std::int64_t StepsOfSources::begun_or_common(std::uint32_t source, Nanos time) const {
  return number_of(last_begun(any(source) ? of(source) : common_, time));
}

SliceSteps::SliceSteps(const Trace& trace, const Analysis& analysis)
    : trace_(trace), analysis_(analysis), marks_(trace) {
  for (std::size_t i = 0; i < analysis.steps.size(); ++i) {
    by_number_.try_emplace(analysis.steps[i].number, i);
  }
}

std::optional<std::size_t> SliceSteps::index_of(std::int64_t number) const {
  const auto step = by_number_.find(number);
  return step == by_number_.end() ? std::nullopt : std::optional(step->second);
}

std::optional<std::size_t> SliceSteps::at_host(std::uint32_t source, Nanos time) const {
  return index_of(marks_.at(source, time));
}

std::optional<std::size_t> SliceSteps::begun_by_host(std::uint32_t source, Nanos time) const {
  return index_of(marks_.begun(source, time));
}

std::optional<std::size_t> SliceSteps::of(const Slice& slice, Nanos time) const {
  if (const Launch* launch = trace_.launch_of(slice)) {
    const auto step = at_host(trace_.tracks[launch->track].source, launch->begin);
    if (step) return step;
  }
  const auto after = std::ranges::upper_bound(analysis_.windows, time, {}, &Interval::begin);
  if (after == analysis_.windows.begin() || time >= std::prev(after)->end) return std::nullopt;
  return static_cast<std::size_t>(after - analysis_.windows.begin()) - 1;
}

}  // namespace assay::timeline
