// assay: tests deep-learning frameworks the way they are used. See docs/ARCHITECTURE.md.

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <vector>

#include "cli/exit_code.h"
#include "cli/verb_api.h"
#include "cli/verb_chain.h"
#include "cli/verb_corpus.h"
#include "cli/verb_doctor.h"
#include "cli/verb_report.h"
#include "cli/verb_repro.h"
#include "cli/verb_slot.h"
#include "cli/verb_timeline.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Tests deep-learning frameworks the way they are used.", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  const std::vector<assay::Verb> verbs{
      assay::add_api_verb(app),    assay::add_chain_verb(app),  assay::add_timeline_verb(app),
      assay::add_report_verb(app), assay::add_corpus_verb(app), assay::add_doctor_verb(app),
      assay::add_slot_verb(app),   assay::add_repro_verb(app),
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? assay::kAllGood : assay::kUsage;
  }
  for (const assay::Verb& verb : verbs) {
    if (verb.app->parsed()) return assay::run_verb(verb);
  }
  return assay::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that dies is an error where it is written to
  return assay::run_guarded([&] { return run(argc, argv); });
}
