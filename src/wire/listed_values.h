#pragma once

#include <cstdint>
#include <span>

#include "wire/frame.h"

namespace assay::wire {

// Lists up to this length stay in every record.
constexpr std::uint32_t kFewListed = 16;

// A copy of a checked record in which longer lists of a tensor's values are empty. Real cases list
// up to a million indices, which only the report of a failing case needs. The bytes of the lists
// become zeros, which compress to nothing.
Bytes without_listed_values(std::span<const std::uint8_t> record);

}  // namespace assay::wire
