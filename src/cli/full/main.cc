// assay: all verbs.

#include <array>

#include "cli/command_line.h"
#include "cli/full/verbs.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  using namespace assay;
  using namespace assay::cli::full;
  constexpr std::array<AddVerb, 28> kVerbs{
      add_api_verb,     add_chain_verb,      add_timeline_verb, add_report_verb,    add_corpus_verb,
      add_doctor_verb,  add_slot_verb,       add_repro_verb,    add_plan_verb,      add_work_verb,
      add_merge_verb,   add_submit_verb,     add_mutate_verb,   add_relations_verb, add_shrink_verb,
      add_finding_verb, add_show_verb,       add_run_verb,      add_status_verb,    add_stop_verb,
      add_serve_verb,   add_runs_verb,       add_record_verb,   add_capture_verb,   add_blame_verb,
      add_kernel_verb,  add_completion_verb, add_manual_verb,
  };
  return run_program(argc, argv, kVerbs);
}
