#pragma once

// The script of a suite that runs a params file, and the plan that its rehearsal gives.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/plan/plan.h"

namespace assay::chain::script {

struct ScriptRequest {
  std::string params_file;  // or a launching script (.sh)
  std::string mode;
  std::string third;                    // the script's third argument; "": none
  std::string script;                   // path; "": the suite's script for this file and mode
  std::string device;                   // "xpu", "npu": the suite's script for it
  std::filesystem::path project = ".";  // folder to start in
  std::string shim;
  std::string output_root;            // folder of assay's own logs; "": ./test_tipc/assay
  std::string python;                 // replaces every interpreter; "": keep them
  std::vector<std::string> machines;  // replace those of gpu_list; empty: keep them
  std::vector<std::string> gpus;      // the same
  bool makes_checkpoint = true;  // the rehearsed training leaves the checkpoint that the file names
  bool trusted = false;
};

// A suite's script with what it is given.
struct Script {
  std::string path;       // relative to the project
  bool standard = false;  // the standard script: the project has none
  bool launches = false;  // a launching script: there is no params file
  std::string params;     // text of the params file
  bool changed = false;   // that text is not what the file has
  std::string mode;
  std::vector<std::string> arguments;  // behind the params file: mode, third
  std::vector<std::string> programs;   // that the shim stands for, beside the interpreters
  std::string python;                  // in place of every interpreter; "": none
  std::string model;
  std::string checkpoint;  // the name that the file gives the trained weights
  std::string results;     // the folder that the script writes to
  std::string folder;      // of assay's own logs and results
  std::vector<std::string> warnings;
};

// assay-shim, which lies beside assay.
std::string shim_beside(const std::string& assay);

// The name of the standard script for messages.
inline constexpr const char* kStandard = "the standard script";

// Path of the suite's script for a request, relative to the project: beside the file, in a folder
// above it, or in test_tipc. Without one of the usual name, the only one whose name says that it
// does the same work (test_serving.sh). "" if the project has none.
std::string find_script(const ScriptRequest& request);

// Finds and reads the script and its params file. A project without a script gets the standard one,
// if its params file is one that this can read.
Result<Script> read_script(const ScriptRequest& request);

// Rehearses the script. A warning names the helpers (wget, pip, …) that did nothing.
Result<plan::Plan> rehearsed_plan(const Script& script, const ScriptRequest& request);

// The plan of a script that cannot be rehearsed: no stage is known before it runs.
plan::Plan bare_plan(const Script& script);

}  // namespace assay::chain::script
