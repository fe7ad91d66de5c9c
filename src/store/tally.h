#pragma once

// A run in sums: all that reports count. A store keeps them beside its cases, so that nobody has to
// read millions of cases to say how many have passed.

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/case_traits.h"
#include "store/fault_sums.h"
#include "store/stage_times.h"
#include "verdict/outcome.h"

namespace assay {

struct FinishedCase;
namespace wire {
struct Record;
struct Trial;
}  // namespace wire

inline constexpr std::int64_t kMinuteMs = 60'000;

// Finished cases that are alike in all of this are counted together.
struct TallyKey {
  CaseTraits traits;
  Outcome outcome = Outcome::pass;
  std::uint8_t flags = 0;  // OutcomeFlag

  auto operator<=>(const TallyKey&) const = default;
};

struct TallySums {
  std::int64_t cases = 0;
  std::int64_t took_us = 0;  // in slots
  std::int64_t partly = 0;   // cases that were not run under some kind of values
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

using LaneNanoseconds = std::array<std::int64_t, kLaneStages.size()>;

// Sums, or what they change by: numbers may be negative then. What is zero is not there.
class Tally {
 public:
  // A case that has finished, and one that is unfinished again.
  void add(const CaseTraits& traits, const FinishedCase& finished) { change(traits, finished, 1); }
  void take_back(const CaseTraits& traits, const FinishedCase& finished);
  void add(const Tally& other);

  const std::map<TallyKey, TallySums>& cases() const { return cases_; }
  // By the lane's name.
  const std::map<std::string, LaneNanoseconds>& lanes() const { return lanes_; }
  // Every fault of every case: a case with two faults counts in both.
  std::map<FaultKey, FaultSums> faults() const;
  // Cases that were not run under a kind of values, by that kind and the reason.
  const std::map<std::pair<std::string, std::string>, std::int64_t>& not_judged() const {
    return not_judged_;
  }
  // When cases finished: minutes since 1970, by the workers' clocks.
  const std::map<std::int64_t, MinuteSums>& minutes() const { return minutes_; }
  // How many cases were ever taken back: who keeps a list of cases sees by it that it is old.
  std::int64_t taken_back() const { return taken_back_; }
  std::int64_t finished() const;  // cases
  bool empty() const;
  bool operator==(const Tally&) const = default;

  // Lines of UTF-8 without NUL, as stores keep them.
  std::string text() const;
  // Adds what text() has written; an error: it is damaged, and part of it may be added.
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
