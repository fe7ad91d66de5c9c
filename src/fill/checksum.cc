#define XXH_INLINE_ALL
#include "fill/checksum.h"

#include <xxhash.h>

#include <algorithm>

#include "fill/fill.h"
#include "fill/filled.h"
#include "fill/xxh3.h"

namespace assay {
namespace {

// The terms that the chunks from `chunk` on add to the checksum of a tensor with several chunks.
std::uint64_t sum_of_chunks(std::span<const std::byte> bytes, std::uint64_t chunk) {
  std::uint64_t sum = 0;
  for (std::size_t from = 0; from < bytes.size(); from += kChecksumChunk, ++chunk) {
    const std::size_t size = std::min<std::size_t>(kChecksumChunk, bytes.size() - from);
    sum += chunk_term(XXH3_64bits(bytes.data() + from, size), chunk);
  }
  return sum;
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  if (bytes.size() <= kChecksumChunk) return XXH3_64bits(bytes.data(), bytes.size());
  return checksum_of_sum(sum_of_chunks(bytes, 0), bytes.size());
}

std::uint64_t fill_block(const FillRule& rule, const FillKey& key, DType dtype,
                         std::span<std::byte> out, std::uint64_t block) {
  fill(rule, key, dtype, out, block * (kFillBlock / size_of(dtype)));
  return sum_of_chunks(out, block * (kFillBlock / kChecksumChunk));
}

std::uint64_t fill_and_sum(const FillRule& rule, const FillKey& key, DType dtype,
                           std::span<std::byte> out) {
  if (out.size() <= kFillBlock) {
    fill(rule, key, dtype, out);
    return checksum(out);
  }
  std::uint64_t sum = 0;
  for (std::size_t from = 0; from < out.size(); from += kFillBlock) {
    const std::size_t size = std::min(kFillBlock, out.size() - from);
    sum += fill_block(rule, key, dtype, out.subspan(from, size), from / kFillBlock);
  }
  return checksum_of_sum(sum, out.size());
}

}  // namespace assay
