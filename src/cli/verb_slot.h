#pragma once

#include "cli/verb.h"

namespace assay {

// `assay slot JSON`: a slot process; only the engine starts it.
Verb add_slot_verb(CLI::App& parent);

}  // namespace assay
