#include "cli/verb_corpus.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "case/corpus.h"
#include "cli/exit_code.h"

namespace assay {

Verb add_corpus_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("corpus", "Check corpus files without running them");
  app->require_subcommand(1);
  CLI::App* check = app->add_subcommand("check", "Parse every line and print those that are wrong");
  auto files = std::make_shared<std::vector<std::string>>();
  check->add_option("FILE", *files, "Files, or patterns of files such as 'corpus/*.txt'")
      ->required();
  return {app, [files]() -> Result<int> {
            ASSAY_TRY(const CorpusCheck found,
                      check_corpus(*files, [](std::string_view text) { show_text(stdout, text); }));
            return found.failed == 0 ? kAllGood : kSomeFailed;
          }};
}

}  // namespace assay
