#pragma once

#include "cli/verb.h"

namespace assay {

// `assay doctor`: what is found on this machine, what is missing, how to get it.
Verb add_doctor_verb(CLI::App& parent);

}  // namespace assay
