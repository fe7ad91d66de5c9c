#pragma once

// A finding as a text for the issue tracker of the framework whose lane failed, and the script that
// shows it: the facts of which python/assay/scripts/issue.py writes both.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "report/findings.h"
#include "report/repro.h"

namespace assay {

// The role of the lane that a fault is of: "test" or "reference".
std::string role_of(const Fault& fault);

// The build of the lane in this role, without the fingerprint of its files.
std::string build_of_role(const std::map<std::string, std::string>& properties,
                          const std::string& role);

// The request for an issue of a finding (report/scripts.h). `shown`: its smallest known case.
// "limit": seconds that a script may take, which a traced function of the tables needs; 0: none is
// started. "run": whether the script is run, too.
Result<nlohmann::json> issue_request(const std::map<std::string, std::string>& properties,
                                     const Finding& finding, const FoundCase& shown);

}  // namespace assay
