// assay-api: the verbs for API cases. It compiles in a third of the time of `assay`.

#include <array>
#include <string_view>

#include "cli/command_line.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  using namespace assay;
  constexpr std::array<AddVerb, 20> kVerbs{
      add_api_verb,       add_report_verb, add_corpus_verb,  add_doctor_verb,     add_slot_verb,
      add_repro_verb,     add_plan_verb,   add_work_verb,    add_merge_verb,      add_mutate_verb,
      add_relations_verb, add_shrink_verb, add_finding_verb, add_show_verb,       add_record_verb,
      add_capture_verb,   add_blame_verb,  add_kernel_verb,  add_completion_verb, add_manual_verb,
  };
  // Those that full/main.cc adds.
  constexpr std::array<std::string_view, 8> kElsewhere{"chain",  "timeline", "submit", "run",
                                                       "status", "stop",     "serve",  "runs"};
  return run_program(argc, argv, kVerbs, kElsewhere);
}
