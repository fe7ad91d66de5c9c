#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fill/fill.h"

namespace assay {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace assay
