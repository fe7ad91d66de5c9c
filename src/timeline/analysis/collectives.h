#pragma once

// Collective operations: how much they moved how fast, as nccl-tests counts it, and across ranks
// who came last and what the others lost by it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// One rank's part in a collective. Where clocks may be compared, waiting ends when the last rank's
// kernel begins; else the shortest kernel is taken for the one that did not wait.
struct CollectivePart {
  std::int32_t rank = kNone;
  std::size_t slice = 0;  // in Trace::slices
  Nanos begin = 0;
  Nanos end = 0;
  Nanos waiting = 0;
};

struct CollectiveCall {
  std::string name;   // "allreduce"
  std::string group;  // "default_pg", or what the trace calls it
  std::string dtype;
  std::string algorithm;      // "Ring, LL": from the kernel's name, where it tells
  std::int64_t sequence = 0;  // its place among the group's calls
  std::int64_t bytes = kNone;
  std::int32_t group_size = kNone;
  std::vector<CollectivePart> parts;  // by rank
  std::vector<std::int32_t> missing;  // ranks of the group that have no part here
  std::int32_t last = kNone;          // the rank that came last; of several only
  Nanos transfer = 0;                 // without waiting; of a part alone all of it
  double algorithm_bandwidth = 0;     // GB/s: bytes / transfer
  double bus_bandwidth = 0;           // GB/s: what a link carries
};

struct Straggler {
  std::int32_t rank = kNone;
  std::uint64_t last = 0;  // how often it came last
  Nanos cost = 0;          // how long others waited for it, all of them together
  Nanos waited = 0;        // how long it waited for others
};

struct CollectiveReport {
  std::vector<CollectiveCall> calls;        // in the order of time
  std::vector<Straggler> stragglers;        // who cost most first
  std::vector<std::int32_t> missing_ranks;  // of the groups, without any trace here
  std::vector<std::string> notes;
};

CollectiveReport collectives_of(const Trace& trace);

// Bytes of an element of PyTorch's type ("Float", "BFloat16"), 0 when it is not known.
std::int64_t element_bytes(std::string_view dtype);

// Bus bandwidth / algorithm bandwidth of a collective over so many ranks (nccl-tests,
// doc/PERFORMANCE.md).
double bus_factor(std::string_view collective, std::int32_t ranks);

}  // namespace assay::timeline
