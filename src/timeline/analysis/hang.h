#pragma once

// Explains a hang from flight recorder dumps: for each process group, the first collective that did
// not end on all ranks; and each send or receive that did not end.

#include <string>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct Hang {
  std::string group;
  std::string name;
  std::int64_t sequence = 0;
  std::vector<std::int32_t> waiting;     // ranks that called it and did not complete it
  std::vector<std::int32_t> completed;   // ranks that completed it
  std::vector<std::int32_t> not_called;  // ranks whose dump does not have it
  std::vector<std::int32_t> no_dump;     // ranks of the group without a dump
  std::vector<std::string>
      other_calls;  // "rank 3 called broadcast": another operation at this position
};

std::vector<Hang> find_hangs(const Trace& trace);

// One line for each hang; empty without dumps.
std::string hang_table(const Trace& trace);

}  // namespace assay::timeline
