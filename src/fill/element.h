#pragma once

// Computes one element of a tensor from its plan. Shared by host and CUDA.

#include <cstdint>
#include <type_traits>

#include "fill/edges.h"
#include "fill/grid.h"
#include "fill/host_device.h"
#include "fill/numbers.h"
#include "fill/philox.h"
#include "fill/plan.h"

namespace assay {

// Converts a draw to a number in [0, 1), exactly: from all of 16 bits, 24 of 32 or 53 of 64.
template <typename Real, int kWidth>
ASSAY_HD Real unit(std::uint64_t draw) {
  if constexpr (kWidth == 16) {
    // The draw becomes the last bits of 2^23, which is subtracted again. On a GPU this is cheaper
    // than a conversion.
    const auto bits = static_cast<std::uint32_t>(draw) | 0x4B000000;
    return ieee::mul(static_cast<Real>(ieee::sub(ieee::float_of(bits), 0x1p23F)),
                     static_cast<Real>(0x1p-16));
  } else if constexpr (kWidth == 32) {
    return ieee::mul(static_cast<Real>(static_cast<std::int32_t>(draw >> 8)),
                     static_cast<Real>(0x1p-24));
  } else {
    return ieee::mul(static_cast<Real>(static_cast<std::int64_t>(draw >> 11)),
                     static_cast<Real>(0x1p-53));
  }
}

// The width of the draws of a real type. Two values of at most 16 bits share a 32-bit word.
template <typename T>
inline constexpr int kRealDrawWidth = sizeof(T) <= 2 ? 16 : 8 * static_cast<int>(sizeof(T));

// A uniform number below `count`: draw · count / 2^width. The bias is below count / 2^width, and
// plans choose the width so that this is under 1/256.
ASSAY_HD std::uint64_t below(std::uint64_t draw, int width, std::uint64_t count) {
  if (width == 64) return ieee::multiply_high(draw, count);
  return draw * count >> width;
}

template <typename Real>
ASSAY_HD Real clamp_to(const FillPlan& plan, Real value) {
  return ieee::larger(ieee::smaller(value, static_cast<Real>(plan.top)),
                      static_cast<Real>(plan.low));
}

// The whole number first + k as a T: an integer, or the nearest float inside the range.
template <typename T>
ASSAY_HD T whole_value(const FillPlan& plan, std::uint64_t k) {
  const std::uint64_t value = plan.first + k;
  if constexpr (kIsFloat<T>) {
    return rounded<T>(clamp_to(plan, static_cast<double>(static_cast<std::int64_t>(value))));
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {static_cast<std::uint8_t>(value)};
  } else {
    return static_cast<T>(value);
  }
}

// A uniform range, in the arithmetic type of T.
template <typename T>
struct UniformRange {
  using Real = RealOf<T>;
  Real low;
  Real span;
  Real top;

  ASSAY_HD explicit UniformRange(const FillPlan& plan)
      : low(static_cast<Real>(plan.low)),
        span(static_cast<Real>(plan.span)),
        top(static_cast<Real>(plan.top)) {}
  // Maps a draw to [low, high), not yet rounded to T. The sum may round up to `high`, so it is
  // capped at T's last value below. Rounding is monotone and `low` is a value of T, so `low` needs
  // no cap.
  ASSAY_HD Real place(std::uint64_t draw) const {
    const auto u = unit<Real, kRealDrawWidth<T>>(draw);
    return ieee::smaller(ieee::add(low, ieee::mul(u, span)), top);
  }
  ASSAY_HD T value(std::uint64_t draw) const { return rounded<T>(place(draw)); }
};

// The value of one part (real or imaginary) for a draw of `width` bits. T is the type of a part.
template <typename T>
ASSAY_HD T linear_value(const FillPlan& plan, std::uint64_t draw, int width) {
  if constexpr (kIsFloat<T>) {
    if (!plan.whole) return UniformRange<T>(plan).value(draw);
  }
  return whole_value<T>(plan, below(draw, width, plan.count));
}

// halves: half of the whole number first + k.
template <typename T>
ASSAY_HD T half_value(const FillPlan& plan, std::uint64_t draw, int width) {
  const std::uint64_t k = below(draw, width, plan.count);
  const auto twice = static_cast<double>(static_cast<std::int64_t>(plan.first + k));
  return rounded<T>(ieee::mul(0.5, twice));
}

// A permutation of 0 … extent-1 with four random words as key. It is an alternating Feistel network
// over the next power of two, repeated until the result is inside (fewer than two steps on
// average): Black and Rogaway, "Ciphers with arbitrary finite domains" (CT-RSA 2002).
struct Permutation {
  static constexpr int kRounds = 6;
  static constexpr std::uint64_t kMixFirst = 0x9E3779B97F4A7C15;
  static constexpr std::uint64_t kMixSecond = 0xD6E8FEB86659FD93;

  std::uint64_t extent;
  PhiloxBlock keys;
  int bits = 0;

  ASSAY_HD Permutation(std::uint64_t extent_of, const PhiloxBlock& keys_of)
      : extent(extent_of), keys(keys_of) {
    while (bits < 64 && (extent - 1) >> bits != 0) ++bits;
  }
  // True if there are too few bits to split into halves.
  ASSAY_HD bool tiny() const { return bits < 2; }
  ASSAY_HD int low_bits() const { return bits / 2; }
  ASSAY_HD std::uint64_t low_mask() const { return (std::uint64_t{1} << low_bits()) - 1; }
  ASSAY_HD std::uint64_t high_mask() const { return (std::uint64_t{1} << (bits - low_bits())) - 1; }
  // The key of a round.
  ASSAY_HD std::uint64_t key(int round) const {
    return (keys.word[round % 4] + (static_cast<std::uint64_t>(round) << 32)) << 20;
  }
  // One application of the network; not for tiny ones.
  ASSAY_HD std::uint64_t step(std::uint64_t value) const {
    std::uint64_t low = value & low_mask();
    std::uint64_t high = value >> low_bits();
    for (int round = 0; round < kRounds; ++round) {
      const bool into_high = round % 2 == 0;
      std::uint64_t mix = ((into_high ? low : high) ^ key(round)) * kMixFirst;
      mix = (mix ^ mix >> 32) * kMixSecond;
      mix ^= mix >> 32;
      if (into_high) {
        high ^= mix & high_mask();
      } else {
        low ^= mix & low_mask();
      }
    }
    return high << low_bits() | low;
  }
  // The image of `index`.
  ASSAY_HD std::uint64_t of(std::uint64_t index) const {
    if (tiny()) return bits == 0 ? 0 : index ^ (keys.word[0] & 1);
    do {
      index = step(index);
    } while (index >= extent);
    return index;
  }
};

// distinct: the value at position p of `extent`.
template <typename T>
ASSAY_HD T distinct_value(const FillPlan& plan, std::uint64_t p) {
  const std::uint64_t step =
      p * plan.grid_step_whole + ieee::multiply_high(p, plan.grid_step_fraction);
  if constexpr (kIsFloat<T>) {
    if (!plan.whole) {
      return rounded<T>(grid_value(plan.grid_first + static_cast<std::int64_t>(step),
                                   Traits<T>::kMantissa, plan.grid_exponent));
    }
  }
  return whole_value<T>(plan, step);
}

// Converts a draw of any width to a double in [0, 1), exactly.
ASSAY_HD double unit_of(std::uint64_t draw, int width) {
  if (width == 64) return unit<double, 64>(draw);
  return ieee::mul(static_cast<double>(draw), width == 16 ? 0x1p-16 : 0x1p-32);
}

// The value at the fraction u in [0, 1) of the range; monotone in u.
template <typename T>
ASSAY_HD T value_at(const FillPlan& plan, double u) {
  if (!plan.whole) {
    if constexpr (kIsFloat<T>) {
      const double value = ieee::add(plan.low, ieee::mul(u, plan.span));
      return rounded<T>(clamp_to(plan, value));
    }
  }
  const double place = ieee::mul(u, static_cast<double>(plan.count));
  const std::uint64_t k = place < 0x1p64 ? static_cast<std::uint64_t>(place) : plan.count;
  return whole_value<T>(plan, ieee::smaller(k, plan.count - 1));
}

template <typename T>
ASSAY_HD T box_value(const FillPlan& plan, Draws& draws, std::uint64_t index) {
  const std::uint64_t corner = index % 4;  // x1, y1, x2, y2
  const std::uint64_t near_draw = draws.draw(32, index - (corner & 2));
  const std::uint64_t far_draw = draws.draw(32, index - (corner & 2) + 2);
  if (plan.whole) {
    // x1 < half ≤ x2 if the range has at least two numbers.
    const std::uint64_t half = plan.count / 2;
    const std::uint64_t rest = plan.count - half;
    const bool near = corner < 2;
    const std::uint64_t k =
        ieee::multiply_high((near ? near_draw : far_draw) << 32, near ? half : rest);
    return whole_value<T>(plan, near ? k : half + k);
  }
  const double x1 = ieee::mul(0.5, unit<double, 32>(near_draw));
  if (corner < 2) return value_at<T>(plan, x1);
  const double size = ieee::add(0.0625, ieee::mul(0.4375, unit<double, 32>(far_draw)));
  return value_at<T>(plan, ieee::add(x1, size));
}

// Part `part` (0 real, 1 imaginary) of element (row, column) of a symmetric matrix.
template <typename T>
ASSAY_HD T matrix_value(const FillPlan& plan, Draws& draws, std::uint64_t index, int parts,
                        int part) {
  const std::uint64_t size = plan.extent;
  const std::uint64_t row = index / size % size;
  const std::uint64_t column = index % size;
  const std::uint64_t matrix = index - row * size - column;
  const bool below_diagonal = row > column;
  const std::uint64_t source = below_diagonal ? matrix + column * size + row : index;
  const std::uint64_t place =
      source * static_cast<std::uint64_t>(parts) + static_cast<std::uint64_t>(part);
  const auto noise = linear_value<T>(plan, draws.draw(plan.draw_width, place), plan.draw_width);
  const bool raised = plan.kind == FillKind::positive_definite && row == column;
  if constexpr (kIsFloat<T>) {
    using Real = RealOf<T>;
    if (part == 1 && row == column) return rounded<T>(Real{0});
    if (part == 1 && below_diagonal) return rounded<T>(-real_of(noise));
    return raised ? rounded<T>(ieee::add(real_of(noise), static_cast<Real>(plan.diagonal))) : noise;
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return raised ? Boolean{1} : noise;
  } else {
    return raised ? static_cast<T>(plan.diagonal) : noise;
  }
}

// The value of a constant's part. NaN is the same bit pattern on host and device.
template <typename T>
ASSAY_HD T constant_value(const FillPlan& plan) {
  if constexpr (!kIsFloat<T>) {
    return whole_value<T>(plan, 0);
  } else if constexpr (sizeof(T) >= 4) {
    return static_cast<T>(plan.low);
  } else {
    return narrow<T>(static_cast<float>(plan.low));
  }
}

// The two streams of a tensor: the draws of its values, and the keys of its permutations.
struct TensorDraws {
  Draws values;
  Draws keys;
  ASSAY_HD explicit TensorDraws(const Stream& stream) : values(stream), keys(companion(stream)) {}
};

// The position of an element in its run of `extent`, counted from a random start of the run.
ASSAY_HD std::uint64_t turned_place(const FillPlan& plan, Draws& keys, std::uint64_t index) {
  const std::uint64_t start = keys.draw(32, index / plan.extent) % plan.extent;
  return (index + start) % plan.extent;
}

// The element whose draw element `index` takes. Position 3 repeats position 2.
ASSAY_HD std::uint64_t drawn_place(const FillPlan& plan, std::uint64_t index,
                                   std::uint64_t turned) {
  if (plan.extent < 4 || turned != 3) return index;
  return index % plan.extent == 0 ? index + plan.extent - 1 : index - 1;
}

template <typename T>
ASSAY_HD T end_value(const FillPlan& plan, TensorDraws& draws, std::uint64_t index) {
  const std::uint64_t turned = turned_place(plan, draws.keys, index);
  if (plan.extent >= 4 && turned < 2) return whole_value<T>(plan, turned == 0 ? 0 : plan.count - 1);
  const std::uint64_t source = drawn_place(plan, index, turned);
  return linear_value<T>(plan, draws.values.draw(plan.draw_width, source), plan.draw_width);
}

template <typename T>
ASSAY_HD T corner_value(const FillPlan& plan, TensorDraws& draws, std::uint64_t index) {
  const std::uint64_t turned = turned_place(plan, draws.keys, index);
  if (plan.extent >= 4 && turned < 2 && plan.low <= 0 && plan.top > 0) {
    return rounded<T>(static_cast<RealOf<T>>(turned == 1 && plan.low < 0 ? -0.0 : 0.0));
  }
  const std::uint64_t source = drawn_place(plan, index, turned);
  return half_value<T>(plan, draws.values.draw(plan.draw_width, source), plan.draw_width);
}

template <typename T>
ASSAY_HD T row_value(const FillPlan& plan, TensorDraws& draws, std::uint64_t index) {
  const std::uint64_t row = index / plan.extent % 3;
  if (row < 2) return whole_value<T>(plan, row == 0 ? plan.count - 1 : 0);
  return linear_value<T>(plan, draws.values.draw(plan.draw_width, index), plan.draw_width);
}

// Part `part` of `parts` (0 real, 1 imaginary) of element `index`, for every kind. T is the type of
// a part.
template <typename T>
ASSAY_HD T part_value(const FillPlan& plan, TensorDraws& draws, std::uint64_t index, int parts,
                      int part) {
  const std::uint64_t place =
      index * static_cast<std::uint64_t>(parts) + static_cast<std::uint64_t>(part);
  switch (plan.kind) {
    case FillKind::constant:
      if constexpr (kIsFloat<T>) {
        if (part == 1) return rounded<T>(RealOf<T>{0});
      }
      return constant_value<T>(plan);
    case FillKind::symmetric:
    case FillKind::positive_definite:
      return matrix_value<T>(plan, draws.values, index, parts, part);
    case FillKind::boxes:
      return box_value<T>(plan, draws.values, index);
    case FillKind::distinct:
      if (part == 1) break;
      return distinct_value<T>(
          plan,
          Permutation(plan.extent, draws.keys.block(index / plan.extent)).of(index % plan.extent));
    case FillKind::increasing: {
      if (part == 1) break;
      const double u = unit_of(draws.values.draw(plan.draw_width, place), plan.draw_width);
      const double rank = static_cast<double>(index % plan.extent);
      return value_at<T>(plan, ieee::div(ieee::add(rank, u), static_cast<double>(plan.extent)));
    }
    case FillKind::magnitudes:
      return magnitude_value<T>(plan, draws.values.draw(64, place), draws.keys.draw(32, 0), place);
    case FillKind::with_nan:
      if constexpr (kIsFloat<T>) {
        if (edges_of(plan, draws.keys, index).is_nan(plan)) return nan_value<T>();
      }
      break;
    case FillKind::with_infinity:
      if constexpr (kIsFloat<T>) {
        const int sign = edges_of(plan, draws.keys, index).infinity(plan);
        if (sign != 0) return infinity_value<T>(sign);
      }
      break;
    case FillKind::halves:
      if constexpr (kIsFloat<T>) {
        return half_value<T>(plan, draws.values.draw(plan.draw_width, place), plan.draw_width);
      }
      break;
    case FillKind::ends:
      return end_value<T>(plan, draws, place);
    case FillKind::rows:
      return row_value<T>(plan, draws, place);
    case FillKind::corners:
      if constexpr (kIsFloat<T>) return corner_value<T>(plan, draws, place);
      break;
    case FillKind::uniform:
    case FillKind::integers:
      break;
  }
  return linear_value<T>(plan, draws.values.draw(plan.draw_width, place), plan.draw_width);
}

}  // namespace assay
