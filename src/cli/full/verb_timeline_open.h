#pragma once

#include "cli/verb.h"

namespace assay::cli::full {

// `assay timeline open`: serves one trace to the Perfetto UI in a browser on this machine.
Verb add_open_verb(CLI::App& parent);

}  // namespace assay::cli::full
