#pragma once

#include "cli/verb.h"

namespace assay {

// `assay mutate`: plants faults in cases and reports which ones the judge finds.
Verb add_mutate_verb(CLI::App& parent);

}  // namespace assay
