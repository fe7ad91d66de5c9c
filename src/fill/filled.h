#pragma once

// Filling and summing up in one pass: a block at a time, which is summed up while it is in the
// cache.

#include <cstddef>
#include <cstdint>
#include <span>

#include "case/dtype.h"
#include "fill/rule.h"

namespace assay {

// Bytes: a multiple of checksum()'s chunks and of every element.
inline constexpr std::size_t kFillBlock = std::size_t{1} << 17;

// Fills the block at this place of a tensor of more than a checksum's chunk, and gives what its
// bytes add to the checksum (checksum_of_sum() of all blocks' parts); `out` is a whole block, or
// what is left of the tensor at its end.
std::uint64_t fill_block(const FillRule& rule, const FillKey& key, DType dtype,
                         std::span<std::byte> out, std::uint64_t block);

// fill() from the first element on; gives checksum() of all that it wrote.
std::uint64_t fill_and_sum(const FillRule& rule, const FillKey& key, DType dtype,
                           std::span<std::byte> out);

}  // namespace assay
