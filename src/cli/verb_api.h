#pragma once

#include "cli/api_options.h"
#include "cli/verb.h"

namespace assay {

// `assay api`: runs API cases.
Verb add_api_verb(CLI::App& parent);
// The same for options that another verb has made.
Result<int> run_api(ApiOptions options);

}  // namespace assay
