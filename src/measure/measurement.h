#pragma once

// How far two results differ: everything that a verdict needs, found in one pass over the bytes, so
// that a stored measurement can be judged again under other tolerances.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace assay {

// The version of a measurement's meaning; stored beside it.
inline constexpr int kMeasurementVersion = 2;

// a agrees with the reference b when |a - b| ≤ atol + rtol · |b|.
struct Tolerance {
  double atol = 0;
  double rtol = 0;
  bool operator==(const Tolerance&) const = default;
};

// The relative tolerances for which a measurement holds the absolute one that is needed beside
// them. The first is 0, and they go up.
inline constexpr std::array<double, 7> kRtolGrid{0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};

inline constexpr std::uint64_t kNoIndex = std::numeric_limits<std::uint64_t>::max();

// One pair of elements. Values are {real, imaginary} as doubles (an int64 beyond 2^53 is rounded;
// its index tells where the exact one lies).
struct Offender {
  std::uint64_t index = kNoIndex;  // kNoIndex: there is none
  std::array<double, 2> left{};
  std::array<double, 2> right{};
  double excess = 0;  // |a - b| - rtol · |b|; infinite where NaN or infinity disagree
  explicit operator bool() const { return index != kNoIndex; }
  bool operator==(const Offender&) const = default;
};

inline constexpr std::size_t kUlpBuckets = 33;

// The left side is the one under test (a), the right side the reference (b).
//
// Arithmetic. float16, bfloat16, float8 and float32 are compared in float32, the rest in float64:
// d = |a - b| is rounded once, and so is each d - rtol · |b| (fused). So a limit is kept to within
// one part in 2^24 (2^53), the tolerances being rounded to that type likewise. Complex numbers
// differ by the modulus of the difference. Of integers and bool the difference is taken exactly, in
// integers, before it becomes a double: two values that differ never have d = 0, however large they
// are. Zeros are equal whatever their sign.
struct Measurement {
  std::uint64_t count = 0;      // elements
  std::uint64_t bit_equal = 0;  // pairs with the same bits

  // Pairs that are not finite. A complex number is NaN when a part is, infinite when a part is.
  std::uint64_t both_nan = 0;        // agreement
  std::uint64_t nan_left_only = 0;   // disagreement
  std::uint64_t nan_right_only = 0;  // disagreement
  std::uint64_t inf_disagree = 0;    // one side infinite, or infinities that differ

  // Over finite pairs; 0 where there are none.
  double max_abs = 0;
  double max_rel = 0;  // |a - b| / |b| where b ≠ 0
  // For each rtol of kRtolGrid the smallest atol ≥ 0 under which every finite pair agrees. The
  // first is max_abs.
  std::array<double, kRtolGrid.size()> atol_needed{};

  // Pairs by how many values of the dtype lie from one to the other (of complex: the farther part;
  // of integers: the difference): [0] none, [k] 2^(k-1) to 2^k - 1, the last one 2^31 and more.
  // Equal infinities are in [0]; all other pairs that are not finite are in none.
  std::array<std::uint64_t, kUlpBuckets> ulp_histogram{};

  // Under the tolerance that the measurement was made with:
  Tolerance under;
  std::uint64_t beyond = 0;  // pairs that disagree, NaN and infinity among them
  Offender first;            // the first of them
  Offender worst;            // the pair with the largest excess above 0, disagreeing or not

  bool operator==(const Measurement&) const = default;
};

// Adds the measurement of the elements that follow those of `head`; both under one tolerance. What
// results is what measuring all at once would have given.
void append(Measurement& head, const Measurement& tail);

// Whether NaN and infinity are in the same places.
bool special_values_agree(const Measurement& measurement);

// An absolute tolerance that suffices beside this rtol, for all finite pairs. On the grid it is the
// smallest; between two grid points it is the chord between them, which is at least as large since
// the smallest is a convex function of rtol; beyond the last point it is the last one's.
double atol_sufficient(const Measurement& measurement, double rtol);

// Whether the results agree under the tolerance. Exact under the one that the measurement was made
// with and on the grid; elsewhere a pass is sure and a failure may be due to the chord.
bool agrees(const Measurement& measurement, Tolerance tolerance);

}  // namespace assay
