#pragma once

// The rule for the values of a tensor, and the key of its random stream.

#include <cstdint>

namespace assay {

struct FillKey {
  std::uint64_t seed = 0;
  std::uint64_t case_id = 0;
  std::uint32_t tensor = 0;
};

// The seed of a framework's generator. Frameworks accept 63 bits. The factor keeps neighbouring run
// seeds apart in the bits that remain.
constexpr std::uint64_t framework_seed(std::uint64_t seed, std::uint64_t case_id) {
  return ((seed * 0x9E3779B97F4A7C15) ^ case_id) >> 1;
}

// The kind of values. The order is part of the wire format: append only.
enum class FillKind : std::uint8_t {
  // Reals, uniform in [low, high). Integers and bool: as `integers`.
  uniform,
  // Whole numbers, uniform in [low, high), in any dtype; bool uses 0 and 1 as far as they are
  // inside.
  integers,
  // Each `extent` elements are a random permutation of `extent` ascending values in [low, high).
  // With extent = element count all differ; with the length of the last dimension each row differs.
  // The values cover the whole range: reals on the coarsest binary grid with enough values,
  // integers as low + ⌊p · (high − low) / extent⌋. If the range has fewer values than `extent`,
  // their counts differ by at most one.
  distinct,
  // Never decreases along a last dimension of length `extent`; evenly from low to high.
  increasing,
  // Square matrices of `extent` rows in the last two dimensions, a[i][j] = a[j][i] in [low, high).
  // Complex: Hermitian.
  symmetric,
  // As `symmetric`, plus extent · max(|low|, |high|) + 1 (and slack for rounding) on the diagonal.
  // The matrix is strictly diagonally dominant if the dtype's range allows. Integers have only that
  // number on the diagonal, bool has true.
  positive_definite,
  // Last dimension 4: x1, y1, x2, y2 in [low, high) with x1 < x2 and y1 < y2. Width and height are
  // at least a sixteenth of the range (integers: 1). Complex: as `uniform`.
  boxes,
  // low everywhere (complex: low + 0i; bool: low ≠ 0; integers: the nearest value of the dtype).
  constant,
  // The kinds below are the edges of a type; fill/edges.h computes them.
  //
  // Magnitudes from low to high, spread evenly over their powers of two: every second element
  // within 1/16 to 1,024, where functions bend, the others over the whole range. `extent` holds the
  // signs (see Signs). Integers: any number of bits, and the extremes.
  magnitudes,
  // As `uniform`, with NaN in some rows of `extent` elements (at least one in the first row), and
  // none in others.
  with_nan,
  // The same with infinities: rows with one sign, with both, and with none.
  with_infinity,
  // Halves of whole numbers, uniform in [low, high): ties, zeros, and values that round either way.
  // Integers and bool: as `integers`.
  halves,
  // As `integers`, with the first number, the last number and an equal pair at random positions of
  // every run of `extent` ≥ 4 elements: indices and labels.
  ends,
  // As `halves`, with 0, -0 (if low < 0) and an equal pair at random positions of every run of
  // `extent` ≥ 4 elements.
  corners,
  // As `integers`, but of three rows of `extent` elements one has only the last number and one only
  // the first: masks.
  rows,
};
inline constexpr FillKind kLastFillKind = FillKind::rows;

// The values of `extent` for `magnitudes`.
enum class Signs : std::uint8_t {
  positive = 1,
  both = 2,
  share = 3,  // within [0, 1], as close to 1 as to 0
};

// A fill rule. The limits are first cut to the range of the dtype (for float32 and float64 to half
// of it, so that their difference is finite). Every value v of the tensor, after rounding, has low
// ≤ v < high, except for `constant` and the diagonal of `positive_definite`. If the range has no
// value of the dtype, the tensor is the constant low.
//
// In complex tensors both parts follow the rule, but only the real part of `distinct` and
// `increasing` is ordered; the imaginary part is uniform.
struct FillRule {
  FillKind kind = FillKind::uniform;
  double low = 0;
  double high = 1;
  std::int64_t extent = 1;  // see FillKind; values below 1 mean 1
};

}  // namespace assay
