#pragma once

#include <cstdint>

#include "wire/job.h"

namespace assay {

// A small case that waits.
inline wire::JobT queued(std::uint64_t id, std::uint64_t limit_ms = 1000) {
  wire::JobT made;
  made.test_case.id = id;
  made.test_case.elements = made.test_case.bytes = 1;
  made.attempt.limit_ms = limit_ms;
  return made;
}

}  // namespace assay
