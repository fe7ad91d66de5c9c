#include "timeline/analysis/slice_steps.h"

#include <algorithm>

namespace assay::timeline {

namespace {

std::int64_t number_of(const Step* step) { return step == nullptr ? kNone : step->number; }

}  // namespace

StepsOfSources::StepsOfSources(const Trace& trace)
    : marks_(trace.sources.size()), common_{trace.steps} {
  for (const RankStep& mark : trace.rank_steps) {
    if (mark.source < marks_.size()) marks_[mark.source].steps.push_back(mark.step);
  }
  for (Marks& marks : marks_) std::ranges::sort(marks.steps, {}, &Step::begin);
  std::ranges::sort(common_.steps, {}, &Step::begin);
}

const StepsOfSources::Marks& StepsOfSources::marks_of(std::uint32_t source) const {
  static const Marks kNothing;
  return source < marks_.size() ? marks_[source] : kNothing;
}

const Step* StepsOfSources::last_begun(const Marks& marks, Nanos time) {
  const std::vector<Step>& steps = marks.steps;
  const auto holds = [&](std::size_t at) {
    return at < steps.size() && steps[at].begin <= time &&
           (at + 1 == steps.size() || time < steps[at + 1].begin);
  };
  if (holds(marks.last)) return &steps[marks.last];
  if (holds(marks.last + 1)) return &steps[++marks.last];
  const auto behind = std::ranges::upper_bound(steps, time, {}, &Step::begin);
  if (behind == steps.begin()) return nullptr;
  marks.last = static_cast<std::size_t>(behind - steps.begin()) - 1;
  return &steps[marks.last];
}

std::int64_t StepsOfSources::at(std::uint32_t source, Nanos time) const {
  const Step* const step = last_begun(marks_of(source), time);
  return step != nullptr && time < step->end ? step->number : kNone;
}

std::int64_t StepsOfSources::begun(std::uint32_t source, Nanos time) const {
  return number_of(last_begun(marks_of(source), time));
}

std::int64_t StepsOfSources::begun_or_common(std::uint32_t source, Nanos time) const {
  return number_of(last_begun(any(source) ? marks_of(source) : common_, time));
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
