#pragma once

// `assay timeline record`: runs a command with the recording library in it.

#include "cli/verb.h"

namespace assay::cli::full {

Verb add_record_verb(CLI::App& timeline);

}  // namespace assay::cli::full
