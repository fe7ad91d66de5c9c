#pragma once

// Finds all processes that a stage started, including those that left its process group (setsid,
// daemons). Each has the stage's mark in the environment that it was started with.

#include <string>
#include <string_view>

namespace assay::chain::stage {

inline constexpr std::string_view kMarkVariable = "ASSAY_STAGE";

// A mark that no other process has. Marks of stages start with that of their run.
std::string mark_of_run();
std::string mark_of_stage(std::string_view run);

// The environment entry that sets the mark. A run inside a stage keeps the outer marks, so that the
// end of the outer stage ends it, too.
std::string environment_entry(std::string_view mark);

// Whether this is such an entry.
bool is_mark(std::string_view entry);

// Kills the processes that were started with this mark, as far as our user may see them, until none
// is left. Uses only system calls, so it may be called after a fork.
void kill_marked(std::string_view mark) noexcept;

}  // namespace assay::chain::stage
