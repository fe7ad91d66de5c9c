#include <fmt/format.h>

#include <CLI/App.hpp>

#include "base/terminal.h"
#include "cli/description.h"
#include "cli/verbs.h"

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
  const std::string what = "Print docs/reference/flags.md instead: all flags, in Markdown";
  CLI::Option* markdown = app->add_flag("--markdown", what);
  return {app, [&parent, markdown]() -> Result<int> {
            show(stdout, "{}",
                 markdown->count() > 0 ? flag_page(parent) : man_page(parent, ASSAY_VERSION));
            return kAllGood;
          }};
}

}  // namespace assay
