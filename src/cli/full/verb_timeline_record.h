#pragma once

// `assay timeline record`: runs a command with the recording library loaded.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_record_verb(CLI::App& timeline);

}  // namespace assay::cli::full
