#pragma once

// The plan of a suite's own script: what its rehearsal started, as stages.

#include <string>
#include <vector>

#include "base/result.h"
#include "chain/plan/plan.h"
#include "chain/script/rehearse.h"

namespace assay::chain::script {

struct ScriptRequest {
  std::string params_file;  // or a launching script (.sh)
  std::string mode;
  std::string third;    // the script's third argument; "": none
  std::string script;   // path; "": the suite's script for this file and mode
  std::string project;  // folder to start in; "": the working folder
  std::string shim;
  std::string python;            // replaces the params file's interpreter; "": keep it
  bool makes_checkpoint = true;  // the rehearsed training leaves the checkpoint that the file names
  bool trusted = false;
};

// Path of the suite's script that runs a params file in a mode, relative to the project: beside the
// file, in a folder above it, or in test_tipc. "" if the project has none.
std::string find_script(const std::string& project, const std::string& params_file,
                        const std::string& mode);

// Rehearses the script. A warning names the helpers (wget, pip, …) that did nothing.
Result<plan::Plan> plan_by_script(const ScriptRequest& request);

// The stages of commands, by the lines of the params file: a command belongs to the line whose
// value its words begin with, after the interpreter and the launcher, else to its program's name.
std::vector<plan::Stage> recognised(const std::vector<Command>& commands,
                                    const std::string& params_text);

}  // namespace assay::chain::script
