#include "cli/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <vector>

#include "cli/exit_code.h"
#include "cli/verb_api.h"
#include "cli/verb_chain.h"
#include "cli/verb_corpus.h"
#include "cli/verb_description.h"
#include "cli/verb_doctor.h"
#include "cli/verb_finding.h"
#include "cli/verb_merge.h"
#include "cli/verb_mutate.h"
#include "cli/verb_plan.h"
#include "cli/verb_report.h"
#include "cli/verb_repro.h"
#include "cli/verb_run.h"
#include "cli/verb_serve.h"
#include "cli/verb_shrink.h"
#include "cli/verb_slot.h"
#include "cli/verb_submit.h"
#include "cli/verb_timeline.h"
#include "cli/verb_work.h"

namespace assay {

int run_command_line(int argc, char** argv) {
  CLI::App app("Tests deep-learning frameworks the way they are used.", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  const std::vector<Verb> verbs{
      add_api_verb(app),    add_chain_verb(app),  add_timeline_verb(app), add_report_verb(app),
      add_corpus_verb(app), add_doctor_verb(app), add_slot_verb(app),     add_repro_verb(app),
      add_plan_verb(app),   add_work_verb(app),   add_merge_verb(app),    add_submit_verb(app),
      add_mutate_verb(app), add_shrink_verb(app), add_finding_verb(app),  add_run_verb(app),
      add_status_verb(app), add_stop_verb(app),   add_serve_verb(app),    add_completion_verb(app),
      add_manual_verb(app),
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kAllGood : kUsage;
  }
  for (const Verb& verb : verbs) {
    if (verb.app->parsed()) return run_verb(verb);
  }
  return kUsage;
}

}  // namespace assay
