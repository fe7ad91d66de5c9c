#pragma once

#include "cli/verb.h"

namespace assay {

// `assay doctor`: prints what is installed on this machine, what is missing and how to get it.
Verb add_doctor_verb(CLI::App& parent);

}  // namespace assay
