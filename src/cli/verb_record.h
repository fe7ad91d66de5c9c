#pragma once

#include "cli/verb.h"

namespace assay {

// `assay record`: keeps the results of a lane for later runs (src/goldens).
Verb add_record_verb(CLI::App& parent);

}  // namespace assay
