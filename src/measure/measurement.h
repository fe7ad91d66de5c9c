#pragma once

// How far two results differ. One pass over the bytes finds everything that a verdict needs, so a
// stored measurement can be judged again with other tolerances.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace assay {

// The version of a measurement's meaning, stored beside it.
inline constexpr int kMeasurementVersion = 2;

// a agrees with the reference b if |a - b| ≤ atol + rtol · |b|.
struct Tolerance {
  double atol = 0;
  double rtol = 0;
  bool operator==(const Tolerance&) const = default;
};

// The relative tolerances, ascending from 0, for which a measurement has the absolute tolerance
// that is needed besides.
inline constexpr std::array<double, 7> kRtolGrid{0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};

inline constexpr std::uint64_t kNoIndex = std::numeric_limits<std::uint64_t>::max();

// A pair of elements. Values are {real, imaginary} as doubles; an integer is the sum of its two.
struct Offender {
  std::uint64_t index = kNoIndex;  // kNoIndex: there is none
  std::array<double, 2> left{};
  std::array<double, 2> right{};
  double excess = 0;  // |a - b| - rtol · |b|; infinite if NaN or infinity disagree
  explicit operator bool() const { return index != kNoIndex; }
  bool operator==(const Offender&) const = default;
};

inline constexpr std::size_t kUlpBuckets = 33;

// A comparison of a result under test (a, left) with a reference (b, right).
//
// float16, bfloat16, float8 and float32 are compared in float32, the rest in float64. d = |a - b|
// is rounded once, and so is d - rtol · |b| (fused). Tolerances are rounded to the same type, so a
// limit is exact to one part in 2^24 (2^53). Complex numbers differ by the modulus of the
// difference. The difference of integers and bool is exact before it becomes a double, so different
// values never have d = 0. Zeros are equal whatever their sign.
struct Measurement {
  std::uint64_t count = 0;      // elements
  std::uint64_t bit_equal = 0;  // pairs with the same bits

  // Pairs that are not finite. A complex number is NaN if a part is NaN, else infinite if a part
  // is.
  std::uint64_t both_nan = 0;        // agreement
  std::uint64_t nan_left_only = 0;   // disagreement
  std::uint64_t nan_right_only = 0;  // disagreement
  std::uint64_t inf_disagree = 0;    // one side infinite, or different infinities

  // Over finite pairs; 0 if there are none.
  double max_abs = 0;
  double max_rel = 0;  // |a - b| / |b| where b ≠ 0
  // For each rtol of kRtolGrid, the smallest atol ≥ 0 under which every finite pair agrees. The
  // first is max_abs.
  std::array<double, kRtolGrid.size()> atol_needed{};

  // Counts of pairs by the number of dtype values from one to the other (complex: of the farther
  // part; integers: the difference). [0]: none, [k]: 2^(k-1) to 2^k - 1, last: 2^31 and more. Equal
  // infinities are in [0]; other pairs that are not finite are not counted.
  std::array<std::uint64_t, kUlpBuckets> ulp_histogram{};

  // Under the tolerance of the measurement:
  Tolerance under;
  std::uint64_t beyond = 0;  // pairs that disagree, including NaN and infinity
  Offender first;            // the first that disagrees
  Offender worst;  // the pair with the largest excess above 0, whether it disagrees or not

  bool operator==(const Measurement&) const = default;
};

// Appends the measurement of the following elements. Both must have the same tolerance. The result
// equals that of one measurement of all elements.
void append(Measurement& head, const Measurement& tail);

// True if NaN and infinities are at the same positions.
bool special_values_agree(const Measurement& measurement);

// An absolute tolerance that suffices with this rtol for all finite pairs. On the grid it is the
// smallest one. Between two grid points it is the chord, which is an upper bound because the
// smallest one is a convex function of rtol. Beyond the last point it is the last one's.
double atol_sufficient(const Measurement& measurement, double rtol);

// True if the results agree under the tolerance. Exact on the grid and for the measurement's own
// tolerance. Elsewhere a pass is certain, and a failure may be due to the chord.
bool agrees(const Measurement& measurement, Tolerance tolerance);

}  // namespace assay
