#pragma once

#include "cli/verb.h"

namespace assay {

// `assay serve`: the page of a run (serve/server.h).
Verb add_serve_verb(CLI::App& parent);

}  // namespace assay
