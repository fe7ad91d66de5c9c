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
  // What else is known, one line each: other operations at this position, where the ranks wait, and
  // where a missing rank was last.
  std::vector<std::string> other_calls, places;
  bool blames = true;       // some missing rank waits nowhere else
  std::size_t victims = 0;  // missing ranks that wait elsewhere
};

// The first collective of a group in whose operation, size, type or root the ranks differ.
struct Mismatch {
  std::string group;
  std::int64_t sequence = 0;
  std::string text;  // both sides
};

// First come hangs whose missing ranks wait nowhere else, then those with one such rank, then
// others.
std::vector<Hang> find_hangs(const Trace& trace);
std::vector<Mismatch> find_mismatches(const Trace& trace);

// A few lines for each mismatch and hang; empty without dumps.
std::string hang_table(const Trace& trace);

}  // namespace assay::timeline
