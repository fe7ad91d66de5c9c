#pragma once

// A stored run, counted; what every form of report begins with. Reports read the store only.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "verdict/outcome.h"

namespace assay {

using OutcomeCounts = std::array<std::uint64_t, kOutcomes.size()>;

struct ApiReport {
  OutcomeCounts outcomes{};
  double seconds = 0;  // in both lanes together
};

struct RunReport {
  std::map<std::string, std::string> properties;  // mode, seed, versions …
  OutcomeCounts outcomes{};                       // invalid lines counted in
  std::map<std::string, ApiReport, std::less<>> by_api;
  std::uint64_t cases = 0;       // finished ones and invalid lines
  std::uint64_t unfinished = 0;  // planned and not finished: resume the run
  std::uint64_t flaky = 0;
  std::uint64_t contaminated = 0;
  std::uint64_t leaked = 0;
  // Seconds spent inside lanes, by lane and stage (build, forward, copy, backward).
  std::map<std::string, std::map<std::string, double>> seconds;
};

Result<RunReport> load_report(Store& store);

// "paddle.add" of "paddle.add(Tensor(…), 1)".
std::string_view api_of(std::string_view case_text);

// The flags that say how a case of this run is run and judged, each a word.
std::vector<std::string> rerun_flags(const std::map<std::string, std::string>& properties);
// One command that runs just this case again, quoted for a shell.
std::string rerun_command(std::string_view case_text,
                          const std::map<std::string, std::string>& properties);

// Table of outcomes, each with its count and meaning; for a terminal.
std::string outcome_table(const RunReport& report);
// Table by API and outcome: the failing ones first.
std::string api_table(const RunReport& report);
// {"cases": N, "outcomes": {"pass": …}, …}, with a version.
std::string json_report(const RunReport& report);

}  // namespace assay
