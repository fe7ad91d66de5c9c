#pragma once

// What the time of cases is spent on.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "store/store.h"

namespace assay {

inline constexpr std::array<const char*, 7> kStages{
    "fill", "test forward", "test backward", "reference", "copy", "compare", "wait"};

// Seconds of cases in each of kStages; those of both lanes together, but for the calls. "wait" is
// how long the lane that was done first waited for the other.
struct StageTimes {
  std::array<double, kStages.size()> seconds{};
  std::uint64_t cases = 0;  // whose records were read

  void add(const StageTimes& other);
  // Milliseconds of a case on average, stage by stage.
  nlohmann::json json() const;
};

// Of one case; nothing where its record is not there or cannot be read.
StageTimes stage_times(const FinishedCase& finished);

// In which row of kSizes a case stands, by the elements of all its tensors.
inline constexpr std::array<const char*, 6> kSizes{"no tensor",         "up to 100 elements",
                                                   "up to 10 thousand", "up to 1 million",
                                                   "up to 100 million", "more"};
std::size_t size_of_case(std::string_view case_text);

}  // namespace assay
