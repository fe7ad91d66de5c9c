#pragma once

// The words of a command line before CLI11 parses them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace assay {

// The words, with each long flag in the spelling that its verb declares: `-` and `_` are
// interchangeable in names of flags. Words after `--` stay as they are. An unknown verb or flag is
// a usage error that names the nearest one. `elsewhere` lists the verbs that only the full program
// has; their error explains how to build it.
Result<std::vector<std::string>> spelled_words(const CLI::App& root,
                                               const std::vector<std::string>& words,
                                               std::span<const std::string_view> elsewhere);

}  // namespace assay
