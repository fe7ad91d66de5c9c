#pragma once

#include <cstdint>
#include <ctime>

namespace assay {

// Nanoseconds of CLOCK_MONOTONIC: the same clock in every process of a machine.
inline std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Milliseconds since 1970, for people and for logs.
inline std::int64_t wall_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace assay
