#pragma once

// `assay submit`: hands workers to the scheduler that a cluster has.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_submit_verb(CLI::App& parent);

}  // namespace assay::cli::full
