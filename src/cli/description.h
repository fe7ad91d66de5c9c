#pragma once

// The command line's own description, in other forms than --help: what the parser knows of its
// verbs and options, and nothing else, so that they cannot differ.

#include <string>

namespace CLI {
class App;
}

namespace assay {

// A page for man(1), in roff.
std::string man_page(const CLI::App& root, const std::string& version);

// A script for bash: words for the verbs and options of each verb, files for everything else.
std::string bash_completion(const CLI::App& root);

}  // namespace assay
