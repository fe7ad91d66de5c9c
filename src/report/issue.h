#pragma once

// A finding as a text for the issue tracker of the framework whose lane failed, and the script that
// shows it: the facts of which python/assay/scripts/issue.py writes both.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "case/case.h"
#include "report/findings.h"
#include "report/repro.h"
#include "wire/messages_generated.h"

namespace assay {

// What all scripts of a fault of a case are made of: the request for one (report/scripts.h).
Result<nlohmann::json> script_request(const std::map<std::string, std::string>& properties,
                                      const FoundCase& found, const Case& parsed,
                                      const wire::Trial& trial, const Fault& fault);

// The request for an issue of a finding (report/scripts.h). `shown`: its smallest known case.
// "limit": seconds that a script may take, which a traced function of the tables needs; 0: none is
// started. "run": whether the script is run, too.
Result<nlohmann::json> issue_request(const std::map<std::string, std::string>& properties,
                                     const Finding& finding, const FoundCase& shown);

}  // namespace assay
