#pragma once

// A slot: one seat on a device. It takes cases from the supervisor, runs each in its lanes,
// measures how the results differ, and sends records back. It does not judge.

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace assay {

// Serves the supervisor at the other end of the socket until it says stop or closes the connection.
// The first message names the lanes. Meanwhile the slot opens `device`, if not empty: the one that
// results will be compared on. Before it fails for a reason that another slot in its place would
// have too, it tells the supervisor.
Status run_slot(Fd supervisor, const std::string& device = "");

}  // namespace assay
