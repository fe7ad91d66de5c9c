#pragma once

// Why a job hangs, from the flight recorder dumps of its ranks: for each process group the first
// collective that has not ended everywhere, who is in it, and who has not come; and each send or
// receive between two ranks that has not ended.

#include <string>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

struct Hang {
  std::string group;
  std::string name;
  std::int64_t sequence = 0;
  std::vector<std::int32_t> waiting;     // called it, and it has not ended for them
  std::vector<std::int32_t> completed;   // it has ended for them
  std::vector<std::int32_t> not_called;  // their dump does not have it
  std::vector<std::int32_t> no_dump;     // ranks of the group without a dump
  std::vector<std::string> other_calls;  // "rank 3 called broadcast": not the same operation
};

std::vector<Hang> find_hangs(const Trace& trace);

// A line each; empty for a trace without dumps.
std::string hang_table(const Trace& trace);

}  // namespace assay::timeline
