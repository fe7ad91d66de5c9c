#pragma once

// What a case is expected to need, from its text alone.

#include <cstdint>

#include "case/case.h"
#include "wire/messages_generated.h"

namespace assay {

struct Cost {
  std::uint64_t elements = 0;  // of all its tensors
  std::uint64_t bytes = 0;     // of memory, in one lane: inputs, gradients, results, work space
  std::uint64_t work_us = 0;   // time in a slot
};

// The time limits by elements: ≤ 1M 90 s, ≤ 10M 300 s, ≤ 100M 1800 s, above 3600 s.
std::uint64_t time_limit_ms(std::uint64_t elements);

// The time in a slot of a case that nobody has measured yet.
std::uint64_t expected_work_us(std::uint64_t elements);
// The time that lanes spent on a case, as its record tells: they run side by side.
std::uint64_t measured_work_us(const wire::Record& record);

// Counts results that are much larger than the inputs as tensors too: shapes that an API makes a
// result from (paddle.zeros([1000, 1000])), and products (one_hot, tile, kron).
Cost estimate_cost(const Case& parsed);

}  // namespace assay
