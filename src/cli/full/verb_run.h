#pragma once

#include "cli/verb.h"

namespace assay::cli::full {

// `assay run`, `assay status` and `assay stop`: campaigns (campaign/campaign.h).
Verb add_run_verb(CLI::App& parent);
Verb add_status_verb(CLI::App& parent);
Verb add_stop_verb(CLI::App& parent);

}  // namespace assay::cli::full
