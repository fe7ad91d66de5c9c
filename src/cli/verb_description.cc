#include "cli/verb_description.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "base/terminal.h"
#include "cli/description.h"
#include "cli/exit_code.h"

namespace assay {

Verb add_completion_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "completion", "Print the completion for bash: source <(assay completion)");
  return {app, [&parent]() -> Result<int> {
            show(stdout, "{}", bash_completion(parent));
            return kAllGood;
          }};
}

Verb add_manual_verb(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("manual", "Print the page for man: assay manual | man -l -");
  return {app, [&parent]() -> Result<int> {
            show(stdout, "{}", man_page(parent, ASSAY_VERSION));
            return kAllGood;
          }};
}

}  // namespace assay
