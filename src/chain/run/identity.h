#pragma once

#include <string>

#include "chain/plan/plan.h"
#include "chain/stage/stage_run.h"

namespace assay::chain::run {

// The state of a project's sources (scripts and settings), as a number that changes when one of
// them does. Hidden folders, results of campaigns and of TIPC, and what the plan's stages write do
// not count.
std::string sources_of(const std::string& project, const plan::Plan& plan);

// What decides the result of a stage: its command, the settings in its environment, the interpreter
// and its framework, the sources, and the files that its arguments name, but for its own output.
// Two runs of a stage with the same identity are the same.
std::string identity_of(const plan::Stage& stage, const stage::StageCommand& command,
                        const std::string& sources);

}  // namespace assay::chain::run
