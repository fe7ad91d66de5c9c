#pragma once

// The verbs that assay has beside those of cli/verbs.h.

#include "cli/verbs.h"  // IWYU pragma: export

namespace assay::cli::full {

Verb add_chain_verb(CLI::App& parent);
// Subcommands of `assay chain`. `fleet` starts `node` and a campaign starts `remote`.
Verb add_chain_check(CLI::App& chain);
Verb add_chain_compare(CLI::App& chain);
Verb add_chain_fleet(CLI::App& chain);
Verb add_chain_judge(CLI::App& chain);
Verb add_chain_node(CLI::App& chain);
Verb add_chain_record(CLI::App& chain);
Verb add_chain_remote(CLI::App& chain);
Verb add_chain_report(CLI::App& chain);
Verb add_chain_run(CLI::App& chain);
Verb add_chain_speed(CLI::App& chain);

Verb add_run_verb(CLI::App& parent);
Verb add_runs_verb(CLI::App& parent);
Verb add_serve_verb(CLI::App& parent);
Verb add_status_verb(CLI::App& parent);
Verb add_stop_verb(CLI::App& parent);
Verb add_submit_verb(CLI::App& parent);
Verb add_timeline_verb(CLI::App& parent);
Verb add_timeline_open(CLI::App& timeline);
Verb add_timeline_record(CLI::App& timeline);
Verb add_timeline_watch(CLI::App& timeline);

}  // namespace assay::cli::full
