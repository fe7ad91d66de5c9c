#pragma once

// Questions about a record that come before its results are judged: is it complete, and how did its
// lanes end?

#include <cstdint>
#include <optional>
#include <string>

#include "wire/messages_generated.h"

namespace assay {

// Whether the record can be judged: it has trials, each has lanes, and each pair names two of them.
bool is_whole(const wire::Record& record);

// Whether `assay mutate` planted a fault in this trial. It is then no evidence about the framework.
bool is_mutant(const wire::Trial& trial);

// Whether the case did not run in the trial's value regime.
bool is_skipped(const wire::Trial& trial);

// Whether a lane died of a SIGKILL that neither assay nor the kernel's out-of-memory killer sent.
// Another program sent it, so the case is not to blame.
bool killed_from_outside(const wire::Record& record);

// The longest time in µs of a lane that finished while another lane of its trial ran out of time;
// nullopt if there is none. If there is one, the case hangs; otherwise it may just be slow.
std::optional<std::uint64_t> took_beside_overdue_us(const wire::Record& record);

// What happened to the lanes beside `overdue`, for a message: "; the torch lane took 0.002 s", or
// "; the torch lane as well" if it ran out of time too.
std::string others_of_overdue(const wire::Trial& trial, const wire::LaneRecord& overdue);

}  // namespace assay
