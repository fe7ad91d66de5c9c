#pragma once

#include "cli/verb.h"

namespace assay {

Verb add_capture_verb(CLI::App& parent);
Verb add_blame_verb(CLI::App& parent);

}  // namespace assay
