#pragma once

#include "cli/verb.h"

namespace assay {

// `assay finding DIR N`: prints a finding of a run as a text for an issue.
Verb add_finding_verb(CLI::App& parent);

}  // namespace assay
