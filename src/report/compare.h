#pragma once

// Compares a run with a past run or a baseline: new faults, faults that grew, fixed faults, and
// lost coverage.

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

// The case with the fewest elements that has a fault.
struct FaultExample {
  std::uint64_t id = 0;
  std::uint64_t elements = 0;
  std::string text;
  std::string message;
};

// A fault of the run, with what was known about it.
struct ComparedFault {
  FaultState state = FaultState::known;
  FaultSums now;
  KnownFault before;
  std::string why;        // how it grew: "also float64"
  bool by_share = false;  // it grew because more cases have it
  FaultExample example;   // only for faults that are new or grew
};

// Cases of one API and dtype that were judged before but not in this run.
struct LostCoverage {
  std::string api;
  std::string dtype;
  bool rejected = false;  // because both frameworks now reject the call
  Coverage before;
  Coverage now;

  // "4 of 12 cases are not judged (0 of 12 before)"
  std::string text() const;
};

// A setting that differs between the two runs.
struct SettingChange {
  std::string key;
  std::string before;
  std::string now;
  std::string bearing;  // why it alone may change verdicts; empty: the build under comparison
};

// The builds of a lane in both runs; empty: not kept.
struct ComparedBuild {
  std::string lane;
  std::string before;
  std::string now;
};

struct SlowerApi {
  std::string api;
  double before_s = 0;  // average time of call and gradients in the test lane
  double now_s = 0;
};

struct RunComparison {
  std::string past;  // where it was read from
  std::vector<ComparedBuild> builds;
  std::vector<SettingChange> settings;       // without the builds
  std::map<FaultKey, ComparedFault> faults;  // of the run
  std::map<FaultKey, KnownFault> fixed;      // known faults that the run does not have
  std::vector<LostCoverage> lost;
  std::vector<SlowerApi> slower;
  SpeedComparison speed;  // if both runs timed their cases
  bool strict = false;    // a flaky case counts as a failure
  std::string notice;     // about the baseline file; empty: none

  std::uint64_t count(FaultState state) const;
  // Whether a gate must fail: there are new faults, faults that grew, or slower parts.
  bool worse() const {
    return count(FaultState::added) + count(FaultState::grown) + speed.count(Speed::slow) > 0;
  }
  // The state of the case's worst fault: new, else grown, else known.
  FaultState state_of(const FinishedCase& finished) const;
};

// Compares a run with a past one. A usage error if their case ids are computed differently.
Result<RunComparison> compare_runs(RunReader& now, const PastRun& past, bool strict);

// Whether a verdict counts as a failure.
bool counts_as_failure(const Verdict& verdict, bool strict);

// "new", "grown", "known".
std::string_view word(FaultState state);

// The number of elements of all tensors of a case; 0 if the text cannot be parsed.
std::uint64_t elements_of(std::string_view case_text);

// The fault of a case that has this key; nullptr if none has it.
const Fault* find_fault(const FaultKey& key, const Verdict& verdict);
// The message of the case's fault with this key. It names the value regime.
std::string message_of(const FaultKey& key, const Verdict& verdict);

// The builds of both sides, a line each: "paddle before: 3.3.1, …".
std::vector<std::string> build_lines(const RunComparison& comparison);

// The key and extent of a fault.
nlohmann::json fault_json(const FaultKey& key, const FaultSums& sums);
// For people: counts first, then what is worse.
// Leaves out the faults unless `faults`: a list of findings may show them already.
std::string comparison_table(const RunComparison& comparison, const Terminal& terminal = {},
                             bool faults = true);
nlohmann::json comparison_json(const RunComparison& comparison);

}  // namespace assay
