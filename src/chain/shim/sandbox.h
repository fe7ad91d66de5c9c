#pragma once

// Shuts a process in, and everything that it starts: it reads what its user may read, writes only
// below one folder, has no network, signals nobody, and ends with the process that started it. It
// needs no root.

#include <string>

namespace assay::chain::shim {

// The exit code if a process cannot be shut in. The reason is on stderr.
inline constexpr int kNoSandbox = 125;

// Shuts this process in: it may write below `folder` alone. Returns what the kernel lacks, or "".
// Call it in a process of its own with one thread; there is no way back.
std::string shut_in(const std::string& folder);

// Limits files, processes and memory, and puts the processes that this one starts from now on into
// a PID namespace of their own where the kernel allows it. Returns whether it did.
bool separate();

// As root: becomes a user who owns nothing but `folder` and may read everything, so that the limit
// of processes holds. Without root it does nothing.
void drop_root(const std::string& folder);

// Whether the folder has more than 100,000 files, or more than 1 GiB in them.
bool takes_too_much(const std::string& folder);

// Gives up the controlling terminal, so that nobody can type into it.
void leave_terminal();

// Names that a rehearsal passes on beside those that programs need, separated by commas.
inline constexpr const char* kKeepVariable = "ASSAY_KEEP_ENVIRONMENT";

// Removes all other variables from the environment: any of them may hold a secret.
void forget_environment();

}  // namespace assay::chain::shim
