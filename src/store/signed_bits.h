#pragma once

// SQL has only signed integers. An unsigned 64-bit number is stored as the signed number with the
// same bits.

#include <bit>
#include <cstdint>

namespace assay {

inline std::int64_t signed_bits(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
inline std::uint64_t unsigned_bits(std::int64_t value) {
  return std::bit_cast<std::uint64_t>(value);
}

}  // namespace assay
