#pragma once

// How the time of cases is divided among the stages of their run.

#include <array>
#include <cstdint>

#include "wire/arena.h"

namespace assay {

struct FinishedCase;

inline constexpr std::array<const char*, 7> kStages{
    "fill", "test forward", "test backward", "reference", "copy", "compare", "wait"};
using LaneNanoseconds = std::array<std::int64_t, wire::kStagesOfLane>;

// The nanoseconds that a lane reported for each wire::Stage; 0 for a stage that is missing.
LaneNanoseconds lane_nanoseconds(const wire::LaneRecord& lane);

// Nanoseconds of cases in each of kStages. "fill" and "copy" add up both lanes. "wait" is how long
// the faster lane waited for the other. The time of a lane that died or was killed counts for the
// stage in which it died.
struct StageTimes {
  std::array<std::int64_t, kStages.size()> ns{};
  std::int64_t cases = 0;  // with a readable record

  void add(const StageTimes& other);
  // Nanoseconds in lanes: all stages except "compare" and "wait".
  std::int64_t in_lanes() const;
  bool operator==(const StageTimes&) const = default;
};

// The stage times of one case.
StageTimes stage_times(const wire::Record& record);
// Likewise; all zero if the record is missing or damaged.
StageTimes stage_times(const FinishedCase& finished);

}  // namespace assay
