#pragma once

// `assay merge`: the runs of many machines as one.

#include "cli/verb.h"

namespace assay {

Verb add_merge_verb(CLI::App& parent);

}  // namespace assay
