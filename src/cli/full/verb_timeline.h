#pragma once

// `assay timeline …`: merge, analyze, open, record.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_timeline_verb(CLI::App& parent);

}  // namespace assay::cli::full
