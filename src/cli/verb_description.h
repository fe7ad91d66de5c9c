#pragma once

#include "cli/verb.h"

namespace assay {

// `assay completion`: what bash is told to complete assay's command line.
Verb add_completion_verb(CLI::App& parent);
// `assay manual`: the page of --help for man.
Verb add_manual_verb(CLI::App& parent);

}  // namespace assay
