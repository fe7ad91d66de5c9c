#pragma once

#include "cli/verb.h"

namespace assay {

Verb add_mutate_verb(CLI::App& parent);

}  // namespace assay
