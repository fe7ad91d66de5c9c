#pragma once

#include <span>

#include "cli/verb.h"

namespace assay {

// Makes a verb a subcommand of the program.
using AddVerb = Verb (*)(CLI::App& program);

// All of main(): reads the command line, runs its verb, which is one of these (`--help` shows them
// in this order), and gives the exit code of the process.
int run_program(int argc, char** argv, std::span<const AddVerb> verbs);

}  // namespace assay
