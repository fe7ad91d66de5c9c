#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

// A project's sources: scripts and settings.
struct Sources {
  std::set<std::string> files;
  std::string state;  // changes when one of them does
};

// Hidden folders, results of campaigns and of TIPC, what the plan's stages write to their outputs,
// and what runs before this one have made do not count.
Sources sources_of(const std::string& project, const plan::Plan& plan);

// Remembers the settings files (.json, .yml, …) that the project has now and had not `before`: the
// run has made them, so they are no sources of the next one.
Status keep_made_files(const std::string& project, const plan::Plan& plan, const Sources& before);

// What decides the result of a stage: its command, the settings in its environment, the interpreter
// and its framework, the sources, and the files that its arguments name, but for its own output.
// Two runs of a stage with the same identity are the same.
std::string identity_of(const plan::Stage& stage, const stage::StageCommand& command,
                        const std::string& sources);

}  // namespace assay::chain::run
