#pragma once

// What the time of cases is spent on.

#include <array>
#include <cstdint>

#include "wire/arena.h"

namespace assay {

struct FinishedCase;
namespace wire {
struct Record;
}

inline constexpr std::array<const char*, 7> kStages{
    "fill", "test forward", "test backward", "reference", "copy", "compare", "wait"};
// STAGES of python/assay/call.py, in the order in which lanes report their nanoseconds.
inline constexpr std::array<const char*, wire::kStagesOfLane> kLaneStages = {"build", "forward",
                                                                             "copy", "backward"};

// Nanoseconds of cases in each of kStages; those of both lanes together, but for the calls. "wait"
// is how long the lane that was done first waited for the other. The time of a lane that died or
// was ended counts for the stage that it was in then.
struct StageTimes {
  std::array<std::int64_t, kStages.size()> ns{};
  std::int64_t cases = 0;  // whose records were read

  void add(const StageTimes& other);
  // What lanes have spent, without comparing and waiting.
  std::int64_t in_lanes() const;
  bool operator==(const StageTimes&) const = default;
};

// Of one case.
StageTimes stage_times(const wire::Record& record);
// Likewise; nothing where its record is not there or cannot be read.
StageTimes stage_times(const FinishedCase& finished);

}  // namespace assay
