#pragma once

#include "cli/verb.h"

namespace assay {

// `assay api`: runs API cases.
Verb add_api_verb(CLI::App& parent);

}  // namespace assay
