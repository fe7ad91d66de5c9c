#pragma once

#include "cli/verb.h"

namespace assay {

// `assay report DIR`: prints the results of a stored run in the chosen format.
Verb add_report_verb(CLI::App& parent);

}  // namespace assay
