#pragma once

// The shim during a run: it hands its command to the run, which starts the real program.

#include <string>
#include <vector>

#include "chain/shim/call.h"

namespace assay::chain::shim {

// Sends the call and this process's input to the run's socket, writes the command's output where
// the script wants it, and returns the command's exit code. The run ends the command if this
// process ends first. Returns -1 if the run cannot be reached.
int pass_on(const Call& call, const char* socket);

// Becomes the real program, without the run: for errands (call.h). Returns only if it cannot.
void become(const std::vector<std::string>& argv);

}  // namespace assay::chain::shim
