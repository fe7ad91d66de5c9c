#define XXH_INLINE_ALL
#include "fill/checksum.h"

#include <xxhash.h>

#include <algorithm>

#include "fill/fill.h"
#include "fill/xxh3.h"

namespace assay {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  if (bytes.size() <= kChecksumChunk) return XXH3_64bits(bytes.data(), bytes.size());
  std::uint64_t sum = 0;
  for (std::size_t from = 0; from < bytes.size(); from += kChecksumChunk) {
    const std::size_t size = std::min<std::size_t>(kChecksumChunk, bytes.size() - from);
    sum += chunk_term(XXH3_64bits(bytes.data() + from, size), from / kChecksumChunk);
  }
  return checksum_of_sum(sum, bytes.size());
}

}  // namespace assay
