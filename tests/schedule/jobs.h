#pragma once

// Cases for tests of the schedule.

#include <cstdint>
#include <limits>
#include <vector>

#include "wire/job.h"

namespace assay {

inline constexpr std::uint64_t kAllMemory = std::numeric_limits<std::uint64_t>::max();

inline wire::JobT sized(std::uint64_t id, std::uint64_t elements, std::uint64_t bytes = 1) {
  wire::JobT made;
  made.test_case.id = id;
  made.test_case.elements = elements;
  made.test_case.bytes = made.attempt.gpu_bytes = bytes;
  return made;
}

inline wire::JobT with_bytes(std::uint64_t bytes) { return sized(0, 0, bytes); }

inline wire::JobT short_of_memory(std::uint64_t bytes) {
  wire::JobT made = with_bytes(bytes);
  made.attempt.memory = wire::MemoryNeed::whole_device;
  return made;
}

inline std::vector<std::uint64_t> ids(const std::vector<wire::JobT>& leased) {
  std::vector<std::uint64_t> found;
  for (const wire::JobT& each : leased) found.push_back(each.test_case.id);
  return found;
}

}  // namespace assay
