#pragma once

#include "cli/verb.h"

namespace assay {

// `assay report DIR`: what a stored run came to, in the form that is asked for.
Verb add_report_verb(CLI::App& parent);

}  // namespace assay
