#pragma once

#include "cli/verb.h"

namespace assay {

// `assay kernel`: judges a function of the user's own.
Verb add_kernel_verb(CLI::App& parent);

}  // namespace assay
