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
inline constexpr int kFillVersion = 4;

// The default rule, which follows engineV2. Float and complex: uniform in [-0.5, 0.5). bool: 0 and
// 1 with equal probability. int8 and uint8: their full range. Wider integers: [-1000, 1000),
// unsigned [0, 1000).
FillRule default_rule(DType dtype);

// Upstream gradients have tensor numbers, too: that of output i has kUpstream + i, which is above
// those of all inputs.
inline constexpr std::uint32_t kUpstream = 1U << 31U;
// The reach of upstream gradients, before upstream_rule() scales it.
inline constexpr double kUpstreamReach = 4;

// The rule for the upstream gradient of an output of `count` elements: uniform in [-reach, reach).
// `inputs`: elements of the largest input. A mean of n elements has gradients of 1/n, so the reach
// grows by powers of two with inputs / count; otherwise faults in such gradients could stay below
// the absolute tolerance. It is 0.5 for half precision, which has too little range and too few
// digits, and for outputs of many elements, because rounding errors of running sums would grow.
FillRule upstream_rule(DType dtype, std::uint64_t count, std::uint64_t inputs);

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
