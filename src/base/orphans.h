#pragma once

// Descendants that have lost their parent: what a killed process had started.

#include <string>
#include <vector>

namespace assay {

// From now on a descendant whose parent ends becomes a child of this process, not of init
// (PR_SET_CHILD_SUBREAPER). Children that this process has already are none of its orphans.
void adopt_orphans();

struct OrphanSweep {
  std::vector<std::string> killed;  // command names, as the kernel has them
  bool all_gone = true;             // false: some were killed and have not ended yet
};

// Kills every child of this process that Process::spawn() did not start, and reaps those that have
// ended. Never waits: call it again until all are gone.
OrphanSweep sweep_orphans();

}  // namespace assay
