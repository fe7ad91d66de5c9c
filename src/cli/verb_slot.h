#pragma once

#include "cli/verb.h"

namespace assay {

// `assay slot`: a slot process. Only the engine starts it.
Verb add_slot_verb(CLI::App& parent);

}  // namespace assay
