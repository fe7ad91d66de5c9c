#pragma once

// `assay submit`: hands workers to a cluster's scheduler.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_submit_verb(CLI::App& parent);

}  // namespace assay::cli::full
