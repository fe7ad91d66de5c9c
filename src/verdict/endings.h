#pragma once

// What a record holds before anything is judged: whether it is whole, and what the ends of lanes
// that came to no result say.

#include <cstdint>
#include <optional>
#include <string>

#include "wire/messages_generated.h"

namespace assay {

// A record says enough to be judged: its lanes are there, and pairs name two of them.
bool is_whole(const wire::Record& record);

// A fault was planted there (`assay mutate`): it says nothing of the framework.
bool is_mutant(const wire::Trial& trial);

// Nothing was run under the trial's kind of values.
bool is_skipped(const wire::Trial& trial);

// A lane died of a SIGKILL that neither assay nor the kernel's out-of-memory killer sent: someone
// else did, which says nothing of the case.
bool killed_from_outside(const wire::Record& record);

// How long, in µs, those lanes took that came to an end where another ran out of time; nothing
// where all of them did: then the case is slow, and does not hang.
std::optional<std::uint64_t> took_beside_overdue_us(const wire::Record& record);

// The same of one trial in words, "; the torch lane took 0.002 s", or "; the torch lane as well"
// where that ran out of time beside the one that is blamed.
std::string others_of_overdue(const wire::Trial& trial, const wire::LaneRecord& overdue);

}  // namespace assay
