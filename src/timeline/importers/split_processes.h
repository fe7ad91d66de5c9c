#pragma once

// Files into which somebody merged the traces of several ranks.

#include "timeline/model.h"

namespace assay::timeline {

// Gives each process that launches work a source of its own, with its tracks. Work is of the
// process with a launch of the same correlation, and of the same label ("[TP01] 0", as SGLang's
// merger writes it). Nothing changes with one such process. Needs the process ids as the names of
// the tracks' processes.
void split_processes(Trace& trace);

}  // namespace assay::timeline
