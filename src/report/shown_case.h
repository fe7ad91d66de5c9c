#pragma once

// Everything that a run knows of one case, for `assay show`.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/terminal.h"
#include "report/fault_element.h"
#include "report/repro.h"

namespace assay {

struct ShownCase {
  // Text, outcome, faults with their elements, lanes with their builds, how each lane ended under
  // each value regime, times, logs, and the commands that run the case again.
  nlohmann::json json;
  std::vector<FaultElement> elements;  // of the faults; empty if the record has no lanes
};

// `folder`: of the run; empty for a run in a database, which has no logs.
Result<ShownCase> shown_case(const std::map<std::string, std::string>& properties,
                             const FoundCase& found, const std::filesystem::path& folder);

// The case for people.
std::string case_page(const ShownCase& shown, const Terminal& terminal);

}  // namespace assay
