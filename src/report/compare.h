#pragma once

// A run against what is known: new faults, faults that grew, faults that are fixed, and what is no
// longer judged.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/terminal.h"
#include "report/past.h"
#include "report/speed_change.h"
#include "store/store.h"

namespace assay {

enum class FaultState : std::uint8_t { added, grown, known };

// The case that shows a fault: of all that do, the one with the fewest elements.
struct FaultExample {
  std::uint64_t id = 0;
  std::uint64_t elements = 0;
  std::string text;
  std::string message;
};

// A fault of the run beside what is known of it.
struct ComparedFault {
  FaultState state = FaultState::known;
  FaultSums now;
  KnownFault before;
  std::string why;        // how it grew: "also float64"
  bool by_share = false;  // it grew because it shows in more cases
  FaultExample example;   // of faults that are new or grew
};

// Cases of one API and dtype that were judged and are not any more.
struct LostCoverage {
  std::string api;
  std::string dtype;
  bool rejected = false;  // both frameworks now refuse the call
  Coverage before;
  Coverage now;

  // "4 of 12 cases are not judged (0 of 12 before)"
  std::string text() const;
};

// A setting of the two runs that is not the same.
struct SettingChange {
  std::string key;
  std::string before;
  std::string now;
  std::string bearing;  // why verdicts may differ for that alone; empty: a build, which is compared
};

struct SlowerApi {
  std::string api;
  double before_s = 0;  // on average, for calls and gradients in the test lane
  double now_s = 0;
};

struct RunComparison {
  std::string past;  // where it was read from
  std::vector<SettingChange> settings;
  std::map<FaultKey, ComparedFault> faults;  // of the run
  std::map<FaultKey, KnownFault> fixed;      // known ones that no longer show
  std::vector<LostCoverage> lost;
  std::vector<SlowerApi> slower;
  SpeedComparison speed;  // of runs that timed their cases
  bool strict = false;    // a flaky case counts as a failure
  std::string notice;     // about the baseline file; empty: none

  std::uint64_t count(FaultState state) const;
  // What a gate is about: new faults, faults that grew, parts that take longer.
  bool worse() const {
    return count(FaultState::added) + count(FaultState::grown) + speed.count(Speed::slow) > 0;
  }
  // Whether a case shows a fault that is new or grew. The state of the worst of its faults.
  FaultState state_of(const FinishedCase& finished) const;
};

// Runs whose cases are named in different ways are refused.
Result<RunComparison> compare_runs(RunReader& now, const PastRun& past, bool strict);

// Whether a verdict counts as a failure.
bool counts_as_failure(const Verdict& verdict, bool strict);

// "new", "grown", "known".
std::string_view word(FaultState state);

// The elements of all tensors of a case; 0 where the text does not parse.
std::uint64_t elements_of(std::string_view case_text);

// The message of the case's fault with this key, which names its value regime.
std::string message_of(const FaultKey& key, const Verdict& verdict);

// For people: counts first, then what is worse.
std::string comparison_table(const RunComparison& comparison, const Terminal& terminal = {});
nlohmann::json comparison_json(const RunComparison& comparison);

}  // namespace assay
