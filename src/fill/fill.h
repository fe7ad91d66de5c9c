#pragma once

// Values of tensors. Element i of tensor t of case c is a pure function of (seed, c, t, i) and the
// rule. Any part of a tensor can be computed anywhere and in any order, with the same bits on every
// host (with or without AVX2) and on a GPU (fill_cuda.h).

#include <cstddef>
#include <cstdint>
#include <span>

#include "case/dtype.h"
#include "fill/rule.h"

namespace assay {

// The version of values and checksums. Increase it when any bit of them changes, because stored
// checksums of inputs are compared between runs.
inline constexpr int kFillVersion = 3;

// The default rule, which follows engineV2. Float and complex: uniform in [-0.5, 0.5). bool: 0 and
// 1 with equal probability. int8 and uint8: their full range. Wider integers: [-1000, 1000),
// unsigned [0, 1000).
FillRule default_rule(DType dtype);

// Fills `out` with elements first_element, first_element + 1, … of the tensor. The size of `out` is
// a multiple of the element size; it needs no alignment.
void fill(const FillRule& rule, const FillKey& key, DType dtype, std::span<std::byte> out,
          std::uint64_t first_element = 0);

// Fills `out` with the given values, each converted as `constant` does. Stops at the end of the
// shorter one.
void fill_values(std::span<const double> values, DType dtype, std::span<std::byte> out);

// The checksum with which lanes show that they had the same inputs. Defined in fill/checksum.h.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace assay
