#pragma once

#include <vector>

#include "cli/verb.h"

namespace assay {

// The subcommands of `assay corpus` that make corpora of corpora, or describe them.
std::vector<Verb> add_corpus_tools(CLI::App& corpus);

}  // namespace assay
