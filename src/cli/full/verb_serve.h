#pragma once

#include "cli/verb.h"

namespace assay::cli::full {

// `assay serve`: serves the page of a run (serve/server.h).
Verb add_serve_verb(CLI::App& parent);
// `assay runs`: lists and deletes the runs in the folders of a folder.
Verb add_runs_verb(CLI::App& parent);

}  // namespace assay::cli::full
