#pragma once

// `assay chain …`: check, run, compare, report.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_chain_verb(CLI::App& parent);

}  // namespace assay::cli::full
