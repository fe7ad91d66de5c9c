#pragma once

#include "cli/verb.h"

namespace assay::cli::full {

// `assay serve`: serves the page of a run (serve/server.h).
Verb add_serve_verb(CLI::App& parent);

}  // namespace assay::cli::full
