#pragma once

// The verbs of assay-api, a file each: `assay api` is verb_api.cc.

#include <CLI/App.hpp>        // IWYU pragma: export
#include <CLI/Config.hpp>     // IWYU pragma: export
#include <CLI/Formatter.hpp>  // IWYU pragma: export
#include <vector>

#include "cli/verb.h"  // IWYU pragma: export

namespace assay {

struct ApiOptions;

Verb add_api_verb(CLI::App& parent);
// The same for options that another verb has made.
Result<int> run_api(ApiOptions options);
Verb add_blame_verb(CLI::App& parent);
Verb add_capture_verb(CLI::App& parent);
Verb add_completion_verb(CLI::App& parent);
Verb add_corpus_verb(CLI::App& parent);
// The subcommands of `assay corpus` that make corpora of corpora, or describe them.
std::vector<Verb> add_corpus_tools(CLI::App& corpus);
Verb add_doctor_verb(CLI::App& parent);
Verb add_finding_verb(CLI::App& parent);
Verb add_kernel_verb(CLI::App& parent);
Verb add_manual_verb(CLI::App& parent);
Verb add_merge_verb(CLI::App& parent);
Verb add_mutate_verb(CLI::App& parent);
Verb add_plan_verb(CLI::App& parent);
Verb add_record_verb(CLI::App& parent);
Verb add_relations_verb(CLI::App& parent);
Verb add_report_verb(CLI::App& parent);
Verb add_repro_verb(CLI::App& parent);
Verb add_show_verb(CLI::App& parent);
Verb add_shrink_verb(CLI::App& parent);
// A slot process, which only the engine starts.
Verb add_slot_verb(CLI::App& parent);
Verb add_work_verb(CLI::App& parent);

}  // namespace assay
