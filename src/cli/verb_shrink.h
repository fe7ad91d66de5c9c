#pragma once

#include "cli/verb.h"

namespace assay {

// `assay shrink DIR [ID]`: failures of a run made small.
Verb add_shrink_verb(CLI::App& parent);

}  // namespace assay
