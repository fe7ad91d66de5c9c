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

struct Verb {
  CLI::App* app = nullptr;           // owned by its parent
  std::function<Result<int>()> run;  // gives the process's exit code
};

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
