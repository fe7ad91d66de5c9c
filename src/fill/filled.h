#pragma once

// Fills and sums in one pass: each block is summed while it is in the cache.

#include <cstddef>
#include <cstdint>
#include <span>

#include "case/dtype.h"
#include "fill/rule.h"

namespace assay {

// In bytes; a multiple of a checksum chunk and of every element size.
inline constexpr std::size_t kFillBlock = std::size_t{1} << 17;

// Fills one block of a tensor that is larger than a checksum chunk. Returns the block's part of the
// checksum; checksum_of_sum() of the sum of all parts is the checksum. `out` is a whole block, or
// the rest of the tensor.
std::uint64_t fill_block(const FillRule& rule, const FillKey& key, DType dtype,
                         std::span<std::byte> out, std::uint64_t block);

// Fills a tensor from its first element on. Returns the checksum() of `out`.
std::uint64_t fill_and_sum(const FillRule& rule, const FillKey& key, DType dtype,
                           std::span<std::byte> out);

}  // namespace assay
