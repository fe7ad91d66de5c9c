#pragma once

// `assay merge`: makes one run of the runs of many machines.

#include "cli/verb.h"

namespace assay {

Verb add_merge_verb(CLI::App& parent);

}  // namespace assay
