#pragma once

#include <span>
#include <string_view>

#include "cli/verb.h"

namespace assay {

// Makes a verb a subcommand of the program.
using AddVerb = Verb (*)(CLI::App& program);

// The body of main(): parses the command line, runs its verb and returns the exit code of the
// process. `--help` lists `verbs` in this order. `elsewhere` names the verbs of the full program
// that this one was built without.
int run_program(int argc, char** argv, std::span<const AddVerb> verbs,
                std::span<const std::string_view> elsewhere = {});

}  // namespace assay
