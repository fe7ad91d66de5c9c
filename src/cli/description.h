#pragma once

// The help in other forms. All are made from the parser's own verbs and options, so they always
// agree with --help.

#include <string>

namespace CLI {
class App;
}

namespace assay {

// The help of all verbs as a page for man(1), in roff.
std::string man_page(const CLI::App& root, const std::string& version);

// The reference page of all flags, in Markdown. It describes a flag that several verbs take once.
std::string flag_page(const CLI::App& root);

// A script that completes verbs and options in bash, and files everywhere else.
std::string bash_completion(const CLI::App& root);

}  // namespace assay
