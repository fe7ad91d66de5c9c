#pragma once

// `assay merge`: merges runs of parts of a corpus into one run.

#include "cli/verb.h"

namespace assay {

Verb add_merge_verb(CLI::App& parent);

}  // namespace assay
