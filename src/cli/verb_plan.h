#pragma once

// `assay plan`: loads a corpus into a database, for `assay work` on many machines.

#include "cli/verb.h"

namespace assay {

Verb add_plan_verb(CLI::App& parent);

}  // namespace assay
