#pragma once

// How checksum() is put together, so that a GPU can work on all chunks at once: of up to a chunk it
// is XXH3_64 of the bytes, of more the sum of a term for each chunk's XXH3_64 and place.

#include <cstdint>

#include "fill/hd.h"
#include "fill/xxh3.h"

namespace assay {

inline constexpr std::uint32_t kChecksumChunk = 4096;  // bytes

ASSAY_HD std::uint64_t chunk_term(std::uint64_t hash, std::uint64_t chunk) {
  return xxh3::folded_product(hash ^ xxh3::secret(0), chunk ^ hash ^ xxh3::secret(8));
}
ASSAY_HD std::uint64_t checksum_of_sum(std::uint64_t sum, std::uint64_t bytes) {
  return xxh3::avalanche(sum + bytes * xxh3::kPrime64_1);
}

}  // namespace assay
