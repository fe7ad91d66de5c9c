#pragma once

// The sums of a run: everything that reports count. A store keeps them beside its cases, so that a
// report need not read millions of cases to count the passes.

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "case/case_traits.h"
#include "store/fault_sums.h"
#include "verdict/outcome.h"
#include "wire/arena.h"

namespace assay {

struct FinishedCase;

// The stages among which the time of cases is divided.
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

inline constexpr std::int64_t kMinuteMs = 60'000;

// Finished cases with the same key are counted together.
struct TallyKey {
  CaseTraits traits;
  Outcome outcome = Outcome::pass;
  std::uint8_t flags = 0;  // OutcomeFlag

  auto operator<=>(const TallyKey&) const = default;
};

struct TallySums {
  std::int64_t cases = 0;
  std::int64_t took_us = 0;  // in slots
  std::int64_t partly = 0;   // cases that did not run in some value regime
  StageTimes stages;

  bool operator==(const TallySums&) const = default;
};

// Cases whose fault has the same key and extent are counted together.
using FaultTallyKey = std::pair<FaultKey, FaultExtent>;

struct MinuteSums {
  std::int64_t cases = 0;
  std::int64_t failed = 0;

  bool operator==(const MinuteSums&) const = default;
};

// Sums, or a change of sums, whose numbers may be negative. Keys whose sums are zero are left out.
class Tally {
 public:
  // Counts a finished case.
  void add(const CaseTraits& traits, const FinishedCase& finished) { change(traits, finished, 1); }
  // Reverts add() for a case that becomes unfinished.
  void take_back(const CaseTraits& traits, const FinishedCase& finished);
  void add(const Tally& other);

  const std::map<TallyKey, TallySums>& cases() const { return cases_; }
  // The key is the lane's name.
  const std::map<std::string, LaneNanoseconds>& lanes() const { return lanes_; }
  // The faults of all cases. A case with two faults counts in both.
  std::map<FaultKey, FaultSums> faults() const;
  // The number of cases that did not run in a value regime, by regime and reason.
  const std::map<std::pair<std::string, std::string>, std::int64_t>& not_judged() const {
    return not_judged_;
  }
  // The key is the minute since 1970 in which the cases finished, by the workers' clocks.
  const std::map<std::int64_t, MinuteSums>& minutes() const { return minutes_; }
  // How many cases were ever taken back. If it has grown, a list of cases is out of date.
  std::int64_t taken_back() const { return taken_back_; }
  // The number of finished cases.
  std::int64_t finished() const;
  bool empty() const;
  bool operator==(const Tally&) const = default;

  // The sums as sum lines (store/sum_lines.h).
  std::string text() const;
  // Adds the sums that text() wrote. An error if the text is damaged; a part may then be added.
  Status add_text(std::string_view text);

 private:
  void change(const CaseTraits& traits, const FinishedCase& finished, std::int64_t by);
  void change_by_record(const wire::Record& record, std::int64_t by, TallySums& sums);
  void change_lanes(const wire::Trial& trial, std::int64_t by);
  Status add_line(std::string_view line);

  std::map<TallyKey, TallySums> cases_;
  std::map<FaultTallyKey, std::int64_t> faults_;
  std::map<std::string, LaneNanoseconds> lanes_;
  std::map<std::pair<std::string, std::string>, std::int64_t> not_judged_;
  std::map<std::int64_t, MinuteSums> minutes_;
  std::int64_t taken_back_ = 0;
};

}  // namespace assay
