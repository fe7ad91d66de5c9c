#pragma once

// A verb of the command line: its subcommand, and the function that runs it.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay {

enum ExitCode : int {
  kAllGood = 0,        // no verdict failed
  kSomeFailed = 1,     // a verdict failed; with a baseline: a fault is new or grew
  kUsage = 2,          // the command line, or a file that it names, is wrong
  kTrouble = 3,        // the engine or the machine failed
  kNothingJudged = 4,  // no case got a verdict, coverage was lost, or a case is self_only
  kAnotherBuild = 5,   // --log_dir has a run of another build of a framework
  kInterrupted = 130,
};

struct Verb {
  CLI::App* app = nullptr;           // owned by its parent
  std::function<Result<int>()> run;  // gives the process's exit code
};

// A subcommand of one of `verbs`, which were added to it.
Verb one_of(CLI::App& app, std::vector<Verb> verbs);

// Runs the verb and returns the process's exit code. An error becomes one line on stderr.
int run_verb(const Verb& verb);
// Prints the error as one line on stderr and returns its exit code: kUsage or kTrouble.
int report_error(const Error& error);
// Runs `body` and returns its exit code. An exception becomes one line on stderr and kTrouble.
int run_guarded(const std::function<int()>& body);

// Adds a flag that a Python module reads: `words` gets "--steps=10,20" of "--steps". They live as
// long as the app.
CLI::Option* pass_option(CLI::App& app, std::vector<std::string>& words, const std::string& flag,
                         const std::string& help);
// The same for a flag without a value.
void pass_flag(CLI::App& app, std::vector<std::string>& words, const std::string& flag,
               const std::string& help);

}  // namespace assay
