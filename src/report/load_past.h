#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "report/past.h"

namespace assay {

// Reads a past run or a baseline. `where`: the folder of a run, the address of a database, or a
// baseline file. A usage error if it is none of these.
Result<PastRun> load_past(const std::string& where);

// What `--against` names the shipped lists of known faults.
inline constexpr std::string_view kShippedFaults = "known";

// Reads the lists in `folder` that are about the frameworks of a run: LANE-VERSION.toml, where LANE
// is the label of a lane. `properties` are those of the run. A notice names lanes without a list.
Result<PastRun> load_shipped_faults(const std::filesystem::path& folder,
                                    const std::map<std::string, std::string>& properties);

}  // namespace assay
