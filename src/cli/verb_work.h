#pragma once

// `assay work`: runs cases of a run in a database, as one of many workers, until none is left.

#include "cli/verb.h"

namespace assay {

Verb add_work_verb(CLI::App& parent);

}  // namespace assay
