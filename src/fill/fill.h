#pragma once

// Values of tensors. Element i of tensor t of case c is a pure function of (seed, c, t, i) and the
// rule: any part of any tensor can be made anywhere, in any order, with the same bits on every host
// (with or without AVX2) and, through fill_cuda.h, on a GPU.

#include <cstddef>
#include <cstdint>
#include <span>

#include "case/dtype.h"
#include "fill/rule.h"

namespace assay {

// The version of the values and of their checksums: a change of any bit that fill() writes, or that
// checksum() makes of them, must raise it, since stored checksums of inputs are compared over runs.
inline constexpr int kFillVersion = 3;

// Float and complex: uniform in [-0.5, 0.5), as engineV2 has it. bool: a fair coin. int8 and uint8:
// their full range; wider integers: [-1000, 1000), unsigned [0, 1000).
FillRule default_rule(DType dtype);

// Writes the elements first_element, first_element + 1, … of the tensor over `out`, whose size is a
// multiple of the element size. No alignment is needed.
void fill(const FillRule& rule, const FillKey& key, DType dtype, std::span<std::byte> out,
          std::uint64_t first_element = 0);

// Writes these values instead, each as `constant` would; of more values or more room only the
// common part.
void fill_values(std::span<const double> values, DType dtype, std::span<std::byte> out);

// What lanes compare to show that they had the same inputs: XXH3_64 of the bytes, of more than 4096
// bytes put together from that of every 4096 (fill/checksum.h), so that a GPU is quick with it.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace assay
