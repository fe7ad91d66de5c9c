#pragma once

// The memory that each process's allocator held on each device: its peak, and what was alive then.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/model.h"

namespace assay::timeline {

// What a block is for, by what the program did when it allocated the block and by when the block
// was released:
// temporary: released before the program did something else.
// activations: of the forward pass; released later, within two steps.
// gradients: of the backward pass; alive after it.
// kept: of the forward or backward pass and alive two steps later, such as a library's workspace.
// unknown: allocated before the recording, or without a known phase.
enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimiser,
  activations,
  temporary,
  kept,
  unknown
};
inline constexpr std::size_t kMemoryCategories = 7;
std::string_view name(MemoryCategory category);

// Blocks that are alive at the peak, by who allocated them.
struct MemoryOwner {
  std::string where;
  MemoryCategory category = MemoryCategory::unknown;
  std::int64_t bytes = 0;
  std::size_t blocks = 0;
};

struct MemoryPeak {
  std::int32_t rank = kNone;
  std::int32_t device = kNone;  // kNone: the host's memory
  std::int64_t allocated = 0;   // highest number of bytes
  std::int64_t reserved = 0;
  std::int64_t reserved_then = 0;  // when most was allocated
  Nanos at = 0;                    // the time of the peak
  std::array<std::int64_t, kMemoryCategories> by_category{};
  std::vector<MemoryOwner> owners = {};       // most bytes first; empty without addresses
  std::vector<MemorySegments> segments = {};  // at the end; at most one
};

std::vector<MemoryPeak> memory_peaks(const Trace& trace);

// Two counters for each device: allocated and reserved, in bytes.
std::vector<Counter> memory_counters(const Trace& trace);

}  // namespace assay::timeline
