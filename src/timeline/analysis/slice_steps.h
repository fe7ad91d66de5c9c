#pragma once

// To which step a slice of a GPU belongs.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "timeline/analysis/analysis.h"
#include "timeline/model.h"

namespace assay::timeline {

// The steps that a process marked.
class StepsOfSources {
 public:
  explicit StepsOfSources(const Trace& trace);
  const std::vector<Step>& of(std::uint32_t source) const { return marks_of(source).steps; }
  bool any(std::uint32_t source) const { return !of(source).empty(); }
  // The number of the step at a time, or kNone.
  std::int64_t at(std::uint32_t source, Nanos time) const;
  // The number of the last step that began by then, or kNone.
  std::int64_t begun(std::uint32_t source, Nanos time) const;
  // The same; of a process without marks, such as a recording, among the steps of the trace.
  std::int64_t begun_or_common(std::uint32_t source, Nanos time) const;

 private:
  struct Marks {
    std::vector<Step> steps;       // by begin
    mutable std::size_t last = 0;  // found: the next time is mostly in the same step, or the next
  };
  static const Step* last_begun(const Marks& marks, Nanos time);
  const Marks& marks_of(std::uint32_t source) const;

  std::vector<Marks> marks_;  // by source
  Marks common_;
};

// The step that launched the work; without a launch in a step, the one in whose window `time` is.
class SliceSteps {
 public:
  SliceSteps(const Trace& trace, const Analysis& analysis);
  // An index into Analysis::steps.
  std::optional<std::size_t> of(const Slice& slice, Nanos time) const;
  // The step in which the host was, or that it had begun last.
  std::optional<std::size_t> at_host(std::uint32_t source, Nanos time) const;
  std::optional<std::size_t> begun_by_host(std::uint32_t source, Nanos time) const;

 private:
  std::optional<std::size_t> index_of(std::int64_t number) const;

  const Trace& trace_;
  const Analysis& analysis_;
  StepsOfSources marks_;
  std::unordered_map<std::int64_t, std::size_t> by_number_;
};

}  // namespace assay::timeline
