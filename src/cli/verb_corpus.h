#pragma once

#include "cli/verb.h"

namespace assay {

// `assay corpus check FILE…`: does every line parse.
Verb add_corpus_verb(CLI::App& parent);

}  // namespace assay
