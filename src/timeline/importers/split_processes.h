#pragma once

// Files into which somebody merged the traces of several ranks.

#include "timeline/model.h"

namespace assay::timeline {

// Gives each process that launches work a source of its own, with its tracks; ranks are numbered in
// the order of the processes. A launch belongs to work of the same correlation, and of the same
// label of the process ("[TP01] 0", as SGLang's merger writes it). Nothing changes with one such
// process. Needs the process ids as the names of the tracks' processes. True if there are several.
bool split_processes(Trace& trace);

}  // namespace assay::timeline
