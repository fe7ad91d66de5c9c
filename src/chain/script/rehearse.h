#pragma once

// Rehearses a suite's script: runs it shut in, on a copy of the project, with a shim in place of
// every interpreter. The script decides which commands there are; nothing of them runs.

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "chain/script/recognise.h"

namespace assay::chain::script {

struct RehearsalOptions {
  std::vector<std::string> command;  // "bash", the script, and its arguments
  std::string project;               // folder to start in
  std::string shim;                  // path of assay-shim
  std::vector<std::string>
      programs;                    // further programs that the shim stands for, by PATH or by path
  std::vector<std::string> makes;  // names of files that a training leaves in its output folder
  std::pair<std::string, std::string> replaced;  // a file of the project and its text in the copy
  bool launches = false;  // a stand-in for the benchmark repository is there (kBenchmarkVariable)
  bool standard = false;  // in place of the script, run the standard one, which is trusted
  bool trusted = false;   // also run it where the kernel cannot shut it in (--trust-script)
  std::chrono::seconds limit{60};
};

struct Rehearsal {
  std::vector<Command> commands;  // in the order in which the script started them
  std::vector<Command> helpers;   // of wget, pip, git, kill, …: did nothing
  int code = 0;                   // exit code of the script
  std::string printed;            // its output
};

// It is an error if the script cannot be shut in, or does not end within the limit.
Result<Rehearsal> rehearse(const RehearsalOptions& options);

}  // namespace assay::chain::script
