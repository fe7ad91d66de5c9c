#pragma once

// A run against what was known before it: what fails now and did not, what is mended, what is no
// longer tested, what has become slower.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "report/past.h"
#include "report/speed_change.h"
#include "store/store.h"
#include "verdict/outcome.h"

namespace assay {

enum class Change : std::uint8_t {
  new_failure,  // fails, and did not fail in this way
  lost,         // passed or failed, and is no longer tested
  mended,
  slower,
};

struct ChangedCase {
  Change change = Change::new_failure;
  std::uint64_t id = 0;
  std::string text;
  Outcome now = Outcome::pass;
  std::string before;  // an outcome, or "not there"
  std::string message;
  double seconds_before = 0;  // of those that are slower
  double seconds_now = 0;
};

// A setting of the two runs that is not the same.
struct SettingChange {
  std::string key;
  std::string before;
  std::string now;
  std::string bearing;  // why verdicts may differ for that alone; empty: builds, which are compared
};

struct RunComparison {
  std::string past;  // where it was read from
  std::vector<SettingChange> settings;
  std::vector<ChangedCase> changes;  // by kind, then by text
  std::uint64_t known = 0;           // fail as they did before
  // Cases that the run does not have, and that only it has; nullopt: too many to be counted.
  std::optional<std::uint64_t> only_before = 0;
  std::optional<std::uint64_t> only_now = 0;
  // What is slower was looked for among cases that took so long in the run; 0: among all.
  double slower_from_s = 0;
  SpeedComparison speed;  // of runs that timed their cases
  bool strict = false;    // a flaky case counts as a failure

  std::uint64_t count(Change change) const;
  // What a gate is about: new failures, lost cases, parts that take longer.
  bool worse() const {
    return count(Change::new_failure) + count(Change::lost) + speed.count(Speed::slow) > 0;
  }
};

// Cases are matched by id; runs whose ids are made in different ways are refused. Two runs of one
// database, or one and a baseline, are compared there, and only what differs is read.
Result<RunComparison> compare_runs(RunReader& now, const PastRun& past, bool strict);

// Whether a verdict counts as a failure.
bool counts_as_failure(const Verdict& verdict, bool strict);

// The ids of new failures and of lost cases, of either the first `most`.
std::vector<std::uint64_t> worse_cases(const RunComparison& comparison, std::uint64_t most);

// For a terminal.
std::string comparison_table(const RunComparison& comparison);
nlohmann::json comparison_json(const RunComparison& comparison);

}  // namespace assay
