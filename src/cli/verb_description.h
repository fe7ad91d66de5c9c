#pragma once

#include "cli/verb.h"

namespace assay {

// `assay completion`: prints a script that completes assay's command line in bash.
Verb add_completion_verb(CLI::App& parent);
// `assay manual`: prints the help as a page for man.
Verb add_manual_verb(CLI::App& parent);

}  // namespace assay
