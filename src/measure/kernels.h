#pragma once

// The inner loops of measure() in plain C++ and AVX2; both give the same numbers. A buffer is
// measured in blocks that fit into the first-level cache. A split turns the pairs of a block into
// differences, references and distances; a profile takes their maxima.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "measure/element_difference.h"
#include "measure/measurement.h"

namespace assay {

// The largest number of elements in a block.
inline constexpr std::size_t kMeasureBlock = 2048;
template <typename T>
inline constexpr std::size_t kBlockOf = sizeof(T) <= 2 ? kMeasureBlock : kMeasureBlock / 2;

// The tolerances in the arithmetic type.
template <typename Real>
struct Limits {
  Real grid[kRtolGrid.size()];
  Real rtol;
  Real atol;
};

// The pairs of a block. A pair that is not finite has difference and reference 0 and is counted in
// `special`.
template <typename Real>
struct Split {
  alignas(32) Real difference[kMeasureBlock];
  alignas(32) Real reference[kMeasureBlock];
  std::uint64_t buckets[kUlpBuckets];  // sum over all blocks so far
  std::uint64_t bit_equal;             // sum over all blocks so far
  std::uint32_t special[6];            // of this block, by PairKind; [finite] is unused
  std::uint32_t first_disagreement;    // index in the block, or kMeasureBlock
};

template <typename Real>
struct Profile {
  Real needed[kRtolGrid.size()];  // [0] is the largest difference
  Real relative;
  Real worst;  // largest difference - rtol · reference, at least 0
  std::uint32_t beyond;
};

template <typename Real>
using SplitLoop = void (*)(const std::byte* left, const std::byte* right, std::size_t n,
                           Split<Real>& split);
template <typename Real>
using ProfileLoop = Profile<Real> (*)(const Split<Real>& split, std::size_t n,
                                      const Limits<Real>& limits);
// True if two blocks have the same bits and, for floats, no NaN. May return false for such blocks
// too.
using PlainEqual = bool (*)(const std::byte* left, const std::byte* right, std::size_t bytes);

// The first grid entry that a loop computes: for all types, and for floats of at most 16 bits.
inline constexpr std::size_t kFirstGrid = 1;
inline constexpr std::size_t kFirstCoarse = 4;
template <typename T>
inline constexpr bool kIsCoarse = kIsFloat<T> && sizeof(T) <= 2;
inline constexpr std::size_t kLastGrid = kRtolGrid.size() - 1;

// The bounds under which the quick pass accepts a block.
template <typename Real>
struct Accepted {
  const Limits<Real>& limits;
  Real needed;  // upper bound of needed[p]
  Real excess;  // upper bound of difference - rtol · reference
  // index of needed[] that equals that excess; 0: the loop computes the excess itself, or need not
  std::size_t rtol_entry;
};

// The quick pass over a whole block. It accepts the block if every pair is finite and of one sign,
// no pair differs from a reference of 0, and the bounds hold. Then it adds the block's distances
// and equal pairs to the split, and sets needed[0] to needed[p] and `relative` of the profile.
// Otherwise it changes only the profile.
template <typename Real>
using QuickLoop = bool (*)(const std::byte* left, const std::byte* right,
                           const Accepted<Real>& accepted, Split<Real>& split,
                           Profile<Real>& profile);
// By p from the first computed entry on; without and with the excess.
template <typename Real>
struct QuickLoops {
  std::array<QuickLoop<Real>, kRtolGrid.size()> grid_alone;
  std::array<QuickLoop<Real>, kRtolGrid.size()> with_excess;
};

struct MeasureKernels {
  SplitLoop<float> split_float16;
  SplitLoop<float> split_bfloat16;
  SplitLoop<float> split_float32;
  SplitLoop<double> split_float64;
  PlainEqual equal_float16;
  PlainEqual equal_bfloat16;
  PlainEqual equal_float32;
  PlainEqual equal_float64;
  ProfileLoop<float> profile_float;
  ProfileLoop<double> profile_double;
  // nullptr if there is none.
  const QuickLoops<float>* quick_float16;
  const QuickLoops<float>* quick_bfloat16;
  const QuickLoops<float>* quick_float32;
};

const MeasureKernels& portable_measure_kernels();
const MeasureKernels& avx2_measure_kernels();
const MeasureKernels& best_measure_kernels();

// measure() with the given kernels, for tests and benchmarks.
Measurement measure_with(const MeasureKernels& kernels, DType dtype,
                         std::span<const std::byte> left, std::span<const std::byte> right,
                         Tolerance under);

// The steps of a split and a profile for one pair, shared by the plain and the AVX2 loops.
template <typename T, typename Real>
ASSAY_HD void split_one(const std::byte* left, const std::byte* right, std::size_t i,
                        Split<Real>& split) {
  T a;
  T b;
  __builtin_memcpy(&a, left + i * sizeof(T), sizeof(T));
  __builtin_memcpy(&b, right + i * sizeof(T), sizeof(T));
  const Pair<Real> pair = compare(a, b);
  split.difference[i] = pair.difference;
  split.reference[i] = pair.reference;
  split.bit_equal += __builtin_memcmp(&a, &b, sizeof(T)) == 0;
  if (pair.kind == PairKind::finite || pair.kind == PairKind::inf_agree) {
    ++split.buckets[ulp_bucket(pair.ulps)];
  }
  if (pair.kind == PairKind::finite) return;
  ++split.special[static_cast<int>(pair.kind)];
  const bool agreed = pair.kind == PairKind::both_nan || pair.kind == PairKind::inf_agree;
  if (!agreed && split.first_disagreement == kMeasureBlock) {
    split.first_disagreement = static_cast<std::uint32_t>(i);
  }
}

template <typename Real>
ASSAY_HD void profile_one(Real difference, Real reference, const Limits<Real>& limits,
                          Profile<Real>& profile) {
  for (std::size_t g = 0; g <= kLastGrid; ++g) {
    const Real needed = ieee::fused(-limits.grid[g], reference, difference);
    profile.needed[g] = ieee::larger(profile.needed[g], needed);
  }
  if (reference > 0) {
    profile.relative = ieee::larger(profile.relative, ieee::div(difference, reference));
  }
  const Real excess = ieee::fused(-limits.rtol, reference, difference);
  profile.worst = ieee::larger(profile.worst, excess);
  profile.beyond += excess > limits.atol;
}

// The tolerances in an arithmetic type: rtol rounded to nearest, atol rounded down, which keeps
// every comparison with a number of that type. `coarse`: for floats of at most 16 bits.
template <typename Real>
Limits<Real> limits_of(Tolerance tolerance, bool coarse);

// What a 64-bit integer has beyond its rounding to a double, exact.
inline double beyond_double(std::int64_t value) {
  constexpr double kAboveAll = 9223372036854775808.0;  // 2^63, which is no int64
  const auto rounded = static_cast<double>(value);
  if (rounded >= kAboveAll) {
    return static_cast<double>(value - std::numeric_limits<std::int64_t>::max()) - 1;
  }
  return static_cast<double>(value - static_cast<std::int64_t>(rounded));
}

// An element as {real, imaginary}, or an integer as the sum of two doubles.
template <typename T>
std::array<double, 2> values_of(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (kIsComplex<T>) {
    return {value.real, value.imaginary};
  } else if constexpr (kIsFloat<T>) {
    return {real_of(value), 0};
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return {value.code != 0 ? 1.0 : 0.0, 0};
  } else {
    return {static_cast<double>(value), beyond_double(static_cast<std::int64_t>(value))};
  }
}

}  // namespace assay
