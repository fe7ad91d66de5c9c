#pragma once

// What a verb of the command line is to main(): a subcommand, and what runs when it was chosen.

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

// Runs it and gives the process's exit code; an error becomes one line on stderr.
int run_verb(const Verb& verb);
// All of main(): an exception that nobody foresaw becomes one line and kTrouble, too.
int run_guarded(const std::function<int()>& body);

}  // namespace assay
