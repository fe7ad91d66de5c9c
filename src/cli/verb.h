#pragma once

// What a verb of the command line is to main(): a subcommand, and what runs when it was chosen.

#include <CLI/App.hpp>
#include <functional>

#include "base/result.h"

namespace assay {

struct Verb {
  CLI::App* app = nullptr;           // owned by its parent
  std::function<Result<int>()> run;  // gives the process's exit code
};

}  // namespace assay
