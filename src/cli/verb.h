#pragma once

// A verb of the command line: its subcommand, and the function that runs it.

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

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

}  // namespace assay
