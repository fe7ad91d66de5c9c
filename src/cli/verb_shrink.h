#pragma once

#include "cli/verb.h"

namespace assay {

// `assay shrink DIR [ID]`: shrinks failures of a run.
Verb add_shrink_verb(CLI::App& parent);

}  // namespace assay
