#pragma once

// Collective operations: bandwidths as nccl-tests defines them, and stragglers across ranks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// One rank's part in a collective. With comparable clocks, waiting ends when the last rank's kernel
// begins. Otherwise, the rank with the shortest kernel is assumed not to have waited, and nobody to
// have come last.
struct CollectivePart {
  std::int32_t rank = kNone;
  std::size_t slice = 0;  // index into Trace::slices
  Nanos begin = 0;
  Nanos end = 0;
  Nanos waiting = 0;
};

struct CollectiveCall {
  std::string name;   // "allreduce"
  std::string group;  // "default_pg", or the trace's own name
  std::string dtype;
  std::string algorithm;      // "Ring, LL": from the kernel's name, or empty
  std::int64_t sequence = 0;  // its position among the group's calls
  std::int64_t bytes = kNone;
  std::int32_t group_size = kNone;
  std::vector<CollectivePart> parts;  // by rank
  std::vector<std::int32_t> missing;  // ranks of the group without a part
  std::int32_t last = kNone;          // the rank that came last; kNone in a tie
  Nanos transfer = 0;                 // without waiting; the whole time with a single part
  double algorithm_bandwidth = 0;     // GB/s: bytes / transfer
  double bus_bandwidth = 0;           // GB/s over one link
  double link = 0;  // GB/s of a GPU's links by its data sheet; 0: unknown, or several hosts
};

struct Straggler {
  std::int32_t rank = kNone;
  std::uint64_t last = 0;  // number of calls in which it came last
  Nanos cost = 0;          // how long each other rank waited for it, on average, over its calls
  Nanos waited = 0;        // sum of its waiting for others
};

struct CollectiveReport {
  std::vector<CollectiveCall> calls;        // by time
  std::vector<Straggler> stragglers;        // highest cost first
  std::vector<std::int32_t> missing_ranks;  // members of groups without a trace
  std::vector<std::string> notes;
};

CollectiveReport collectives_of(const Trace& trace);

// Bytes of an element of a PyTorch type ("Float", "BFloat16"); 0 for an unknown type.
std::int64_t element_bytes(std::string_view dtype);

// The ratio of bus to algorithm bandwidth over `ranks` ranks (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(std::string_view collective, std::int32_t ranks);

}  // namespace assay::timeline
