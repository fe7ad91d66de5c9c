#pragma once

#include "cli/verb.h"

namespace assay {

// `assay show DIR ID`: prints everything that a run knows of one case.
Verb add_show_verb(CLI::App& parent);

}  // namespace assay
