#pragma once

// Estimates the memory and time that a case needs, from its text alone.

#include <cstdint>
#include <string_view>

#include "case/case.h"
#include "wire/messages_generated.h"

namespace assay {

struct Cost {
  std::uint64_t elements = 0;  // of all its tensors
  std::uint64_t bytes = 0;     // memory of one lane: inputs, gradients, results, workspace
  std::uint64_t work_us = 0;   // time in a slot
};

// The time limit of a case: 90 s up to 1 million elements, 300 s up to 10 million, 1800 s up to 100
// million, 3600 s above.
std::uint64_t time_limit_ms(std::uint64_t elements);

// A lane that took this long, and 1000 times as long as the others, hangs.
inline constexpr std::uint64_t kHangFromMs = 10'000;

// The expected time in a slot of a case that was never measured.
std::uint64_t expected_work_us(std::uint64_t elements);
// The time that the lanes spent on a case according to its record. Lanes run side by side, so the
// slowest lane of each trial counts.
std::uint64_t measured_work_us(const wire::Record& record);

// The most memory that a lane took on its GPU, or needed when it ran out; 0 if no lane says it.
std::uint64_t measured_device_bytes(const wire::Record& record);

// The estimated cost of a case. It includes results that are much larger than the inputs: those
// with a shape among the arguments (paddle.zeros([1000, 1000])), and products (one_hot, tile,
// kron).
Cost estimate_cost(const Case& parsed);

// Bytes of the tensors of a case, each counted once; 0 for a text that is no case.
std::uint64_t input_bytes(std::string_view text);

}  // namespace assay
