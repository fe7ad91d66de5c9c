#pragma once

// `assay relations`: whether other ways to compute a call give the same result.

#include "cli/verb.h"

namespace assay {

Verb add_relations_verb(CLI::App& parent);

}  // namespace assay
