#pragma once

// The counts of a stored run, from which all reports start. Reports read only the store.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/terminal.h"
#include "case/case_traits.h"
#include "store/store.h"
#include "verdict/outcome.h"

namespace assay {

using OutcomeCounts = std::array<std::uint64_t, kOutcomes.size()>;

// The cases with an outcome that is a failure.
std::uint64_t failures(const OutcomeCounts& counts);
std::uint64_t total(const OutcomeCounts& counts);

struct ApiReport {
  OutcomeCounts outcomes{};
  std::int64_t nanoseconds = 0;  // in all lanes together
};

struct RunReport {
  std::map<std::string, std::string> properties;  // mode, seed, versions …
  OutcomeCounts outcomes{};                       // includes invalid lines
  std::map<std::string, ApiReport, std::less<>> by_api;
  std::uint64_t cases = 0;       // finished cases and invalid lines
  std::uint64_t unfinished = 0;  // planned, but not finished
  std::uint64_t flaky = 0;
  std::uint64_t contaminated = 0;
  std::uint64_t leaked = 0;
  std::uint64_t left_running = 0;
  std::uint64_t changed_state = 0;
  std::uint64_t weak = 0;       // passed, with only shape and dtype compared for some result
  std::uint64_t deviating = 0;  // cases of APIs with known deviations
  // The known deviations of each API in the run.
  std::map<std::string, std::vector<std::string>, std::less<>> known_deviations;
  // Cases that did not run in a value regime, by regime and reason.
  std::map<std::string, std::map<std::string, std::uint64_t>> not_judged;
  std::uint64_t partly_judged = 0;  // cases among those
  // Skipped cases by their reason.
  std::map<std::string, std::uint64_t> skipped;
  // Seconds spent inside lanes, by lane and stage (build, forward, copy, backward).
  std::map<std::string, std::map<std::string, double>> seconds;
};

Result<RunReport> load_report(RunReader& run);

// Red for a failure, green for a pass, yellow for a case without a verdict.
Paint paint_of(const OutcomeInfo& outcome);

// The build of a lane, as a run's properties state it: its version, commit and fingerprint. Empty
// if they do not. Two lanes of one build share the property of the test lane.
std::string build_of(const std::map<std::string, std::string>& properties,
                     const std::string& label);

// The word or path that starts this program, quoted for a shell.
const std::string& own_command();
// The flags that say how a case of this run is run and judged, each a word.
std::vector<std::string> rerun_flags(const std::map<std::string, std::string>& properties);
// A command that runs this case again, quoted for a shell.
std::string rerun_command(std::string_view case_text,
                          const std::map<std::string, std::string>& properties);

// Table of outcomes, each with its count and meaning. `folder` is the run's, for the command that
// prints more; empty: DIR.
std::string outcome_table(const RunReport& report, const std::string& folder = {},
                          const Terminal& terminal = {});
// The known deviations of this run's APIs, a line for each; nothing where it is nothing.
std::string known_deviation_table(const RunReport& report, const Terminal& terminal = {});
// Table by API and outcome, the failing ones first. APIs without a failure are counted in one line,
// unless `passing`. Empty if there is nothing to show.
std::string api_table(const RunReport& report, bool passing, const Terminal& terminal = {});
// {"cases": N, "outcomes": {"pass": …}, …}, with a version.
nlohmann::json json_report(const RunReport& report);
// JSON as text. Replaces bytes that are no UTF-8, which invalid lines may contain.
std::string json_text(const nlohmann::json& object);

}  // namespace assay
