#pragma once

#include "cli/verb.h"

namespace assay {

// `assay repro DIR ID`: writes a script that runs one case of a run again without assay.
Verb add_repro_verb(CLI::App& parent);

}  // namespace assay
