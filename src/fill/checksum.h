#pragma once

// The structure of checksum(), which lets a GPU hash all chunks at once. A tensor of at most one
// chunk has the XXH3_64 of its bytes; a larger one the sum of a term per chunk, made of the chunk's
// XXH3_64 and index.

#include <cstdint>

#include "fill/host_device.h"
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
