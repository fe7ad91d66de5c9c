#pragma once

#include "cli/verb.h"

namespace assay {

// `assay corpus check FILE…`: parses every line.
Verb add_corpus_verb(CLI::App& parent);

}  // namespace assay
