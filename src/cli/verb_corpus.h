#pragma once

#include "cli/verb.h"

namespace assay {

// `assay corpus check FILE…` parses every line; `assay corpus opinfo` writes the cases of PyTorch's
// OpInfo database.
Verb add_corpus_verb(CLI::App& parent);

}  // namespace assay
