#pragma once

// The inner loops of measure(), once in plain C++ and once with AVX2; both find the same numbers.
// A buffer is measured in blocks that stay in the first-level cache: a split turns a block's pairs
// into differences, references and distances, a profile takes their maxima.

#include <cstddef>
#include <cstdint>
#include <span>

#include "measure/measure.h"
#include "measure/pair.h"

namespace assay {

inline constexpr std::size_t kMeasureBlock = 1024;  // elements

// The tolerances as the arithmetic type has them.
template <typename Real>
struct Limits {
  Real grid[kRtolGrid.size()];
  Real rtol;
  Real atol;
};

// The pairs of a block. Those that are not finite have 0 everywhere here and are counted in
// `special`.
template <typename Real>
struct Split {
  alignas(32) Real difference[kMeasureBlock];
  alignas(32) Real reference[kMeasureBlock];
  alignas(32) std::uint32_t ulps[kMeasureBlock];
  std::uint32_t largest_ulps;
  std::uint32_t bit_equal;
  std::uint32_t special[6];          // by PairKind; [finite] is not used
  std::uint32_t first_disagreement;  // place in the block, or kMeasureBlock
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
// Whether two blocks have the same bits and (of floats) no NaN; may say no where there are both.
using PlainEqual = bool (*)(const std::byte* left, const std::byte* right, std::size_t bytes);

struct MeasureKernels {
  SplitLoop<float> split_float16;
  SplitLoop<float> split_bfloat16;
  SplitLoop<float> split_float32;
  SplitLoop<double> split_float64;
  PlainEqual equal_float16;
  PlainEqual equal_bfloat16;
  PlainEqual equal_float32;
  PlainEqual equal_float64;
  Profile<float> (*profile_float)(const Split<float>&, std::size_t n, const Limits<float>&);
  Profile<double> (*profile_double)(const Split<double>&, std::size_t n, const Limits<double>&);
  // Adds n distances, none above `largest`, to the histogram.
  void (*histogram)(const std::uint32_t* ulps, std::size_t n, std::uint32_t largest,
                    std::uint64_t* buckets);
};

const MeasureKernels& portable_measure_kernels();
const MeasureKernels& avx2_measure_kernels();
const MeasureKernels& best_measure_kernels();

// measure() with the given loops; for tests and measurements.
Measurement measure_with(const MeasureKernels& kernels, DType dtype,
                         std::span<const std::byte> left, std::span<const std::byte> right,
                         Tolerance under);

// The steps of a split and a profile for one pair, shared by both kinds of loop.
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
  split.ulps[i] = pair.ulps;
  split.largest_ulps = ieee::larger(split.largest_ulps, pair.ulps);
  split.bit_equal += __builtin_memcmp(&a, &b, sizeof(T)) == 0;
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
  for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
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

// The tolerances in an arithmetic type: rtol to nearest, atol downwards, which leaves every
// comparison with a number of that type as it was.
template <typename Real>
Limits<Real> limits_of(Tolerance tolerance);

}  // namespace assay
