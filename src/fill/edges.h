#pragma once

// Elements of the fill kinds at the edges of a type: magnitudes, NaN, infinity, halves. Shared by
// host and CUDA.

#include <cstdint>
#include <type_traits>

#include "fill/host_device.h"
#include "fill/numbers.h"
#include "fill/philox.h"
#include "fill/plan.h"

namespace assay {

// Exponents of the range 1/16 to 1,024, in which most functions bend.
inline constexpr int kBendFirst = -4;
inline constexpr int kBendLast = 9;

// A point of [0, 2^32) for an element. Consecutive elements are a golden section apart, so a few of
// them cover the range. `start` belongs to the tensor.
ASSAY_HD std::uint32_t golden_place(std::uint64_t index, std::uint32_t start) {
  return start + static_cast<std::uint32_t>(index) * 0x9E3779B9U;
}

// Maps a point of [0, 2^32) to a whole number in [first, first + count).
ASSAY_HD int exponent_at(std::uint32_t point, int first, int count) {
  return first + static_cast<int>(std::uint64_t{point} * static_cast<std::uint64_t>(count) >> 32);
}

template <typename T>
ASSAY_HD T real_magnitude(const FillPlan& plan, std::uint32_t point, std::uint64_t draw) {
  const int first = static_cast<int>(plan.grid_first);
  const int last = first + static_cast<int>(plan.count) - 1;
  int from = first;
  int to = last;
  if (point >> 31 != 0 && first <= kBendLast && last >= kBendFirst) {
    from = first < kBendFirst ? kBendFirst : first;
    to = last > kBendLast ? kBendLast : last;
  }
  const int exponent = exponent_at(point << 1, from, to - from + 1);
  // 1.mantissa · 2^exponent, in two steps because the product may be subnormal.
  const double mantissa = ieee::double_of((draw >> 12) | 0x3FF0000000000000);
  const int half = exponent / 2;
  double value =
      ieee::mul(ieee::mul(mantissa, ieee::power_of_two(half)), ieee::power_of_two(exponent - half));
  if (value > plan.top) value = plan.top;
  const auto signs = static_cast<Signs>(plan.extent);
  if (signs == Signs::share && (draw & 1) != 0) value = ieee::sub(1, value);
  if (signs == Signs::both && (draw & 1) != 0) value = -value;
  return rounded<T>(value);
}

// A whole number with a random number of bits. One in sixteen is the largest or the smallest.
template <typename T>
ASSAY_HD T whole_magnitude(const FillPlan& plan, std::uint32_t point, std::uint64_t draw) {
  if constexpr (std::is_same_v<T, Boolean>) {
    return {static_cast<std::uint8_t>(draw & 1)};
  } else {
    constexpr bool kHasSign = std::is_signed_v<T>;
    constexpr int kBits = 8 * static_cast<int>(sizeof(T)) - (kHasSign ? 1 : 0);
    constexpr std::uint64_t kLargest = ~std::uint64_t{0} >> (64 - kBits);
    const bool negative =
        kHasSign && static_cast<Signs>(plan.extent) == Signs::both && (draw & 1) != 0;
    std::uint64_t value = kLargest;
    if ((draw >> 1 & 15) != 0) value = draw >> 6 & kLargest >> exponent_at(point, 0, kBits);
    if (static_cast<Signs>(plan.extent) != Signs::both && value == 0) value = 1;
    return static_cast<T>(negative ? ~value : value);
  }
}

// `start` is the first draw of the tensor's key stream.
template <typename T>
ASSAY_HD T magnitude_value(const FillPlan& plan, std::uint64_t draw, std::uint64_t start,
                           std::uint64_t place) {
  const std::uint32_t point = golden_place(place, static_cast<std::uint32_t>(start));
  if constexpr (kIsFloat<T>) {
    return real_magnitude<T>(plan, point, draw);
  } else {
    return whole_magnitude<T>(plan, point, draw);
  }
}

// The position of an element in its row, and the draws that decide whether it is ordinary. The
// draws of rows follow those of all elements.
struct RowEdges {
  static constexpr std::uint64_t kRows = std::uint64_t{1} << 40;
  std::uint64_t row;
  std::uint64_t column;
  std::uint64_t of_row;
  std::uint64_t of_element;

  ASSAY_HD bool chosen(const FillPlan& plan, std::uint64_t one_in) const {
    return of_element % one_in == 0 || column == (of_row >> 8) % plan.extent;
  }
  ASSAY_HD bool is_nan(const FillPlan& plan) const {
    return (row == 0 || of_row % 3 != 0) && chosen(plan, 4);
  }
  // 1, -1, or 0 for an ordinary element.
  ASSAY_HD int infinity(const FillPlan& plan) const {
    std::uint64_t kind = of_row % 4;  // none, +, -, both
    if (row == 0 && kind == 0) kind = 3;
    if (kind == 0 || !chosen(plan, 3)) return 0;
    if (kind == 3) return (of_element >> 16 & 1) != 0 ? 1 : -1;
    return kind == 1 ? 1 : -1;
  }
};

// The position and draws of element `index`.
ASSAY_HD RowEdges edges_of(const FillPlan& plan, Draws& keys, std::uint64_t index) {
  const std::uint64_t row = index / plan.extent;
  const std::uint64_t of_row = keys.draw(32, RowEdges::kRows + row);
  return {row, index % plan.extent, of_row, keys.draw(32, index)};
}

template <typename T>
ASSAY_HD T special_value(std::uint32_t code) {
  if constexpr (sizeof(T) >= 4) {
    return static_cast<T>(ieee::float_of(code));
  } else {
    return narrow<T>(ieee::float_of(code));
  }
}

template <typename T>
ASSAY_HD T nan_value() {
  return special_value<T>(0x7FC00000);
}
template <typename T>
ASSAY_HD T infinity_value(int sign) {
  return special_value<T>(sign < 0 ? 0xFF800000 : 0x7F800000);
}

}  // namespace assay
