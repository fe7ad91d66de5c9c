#pragma once

// What a tensor is filled with: the kinds of values, and where an element's own come from.

#include <cstdint>

namespace assay {

struct FillKey {
  std::uint64_t seed = 0;
  std::uint64_t case_id = 0;
  std::uint32_t tensor = 0;
};

// The order is part of the wire format: append only.
enum class FillKind : std::uint8_t {
  // Reals, evenly in [low, high). Integers and bool: as `integers`.
  uniform,
  // Whole numbers, evenly in [low, high), in any dtype; bool takes those of 0 and 1 that are
  // inside.
  integers,
  // Every `extent` elements are a random permutation of `extent` values that go up in [low, high);
  // so with extent = element count all differ, with the last dimension's length every row does.
  // They are spread over the whole range: reals on the coarsest binary grid that has enough values,
  // integers as low + ⌊p · (high − low) / extent⌋. Where the range has fewer values than `extent`,
  // each occurs equally often, give or take one.
  distinct,
  // Goes up (never down) along a last dimension of length `extent`, evenly from low to high.
  increasing,
  // Square matrices of `extent` rows in the last two dimensions, a[i][j] = a[j][i] in [low, high).
  // Complex: Hermitian.
  symmetric,
  // The same, plus extent · max(|low|, |high|) + 1 (and rounding's slack) on the diagonal: strictly
  // diagonally dominant, as long as that is in the dtype's range. Integers have that number alone
  // on
  // the diagonal; bool has true.
  positive_definite,
  // Last dimension 4: x1, y1, x2, y2 in [low, high) with x1 < x2 and y1 < y2; a box is at least a
  // sixteenth of the range wide and high (integers: 1). Complex: as `uniform`.
  boxes,
  // low everywhere (complex: low + 0i; bool: low ≠ 0; integers: nearest inside the dtype).
  constant,
  // The kinds below are the edges of what a type holds; fill/edges.h makes them.
  //
  // Magnitudes from low to high, spread evenly over their powers of two: of the elements every
  // second one within 1/16 to 1,024, where functions bend, the others over the whole range.
  // `extent`
  // says which signs (see Signs). Integers: as many bits as the type has, the extremes among them.
  magnitudes,
  // As `uniform`, with NaN in between: rows of `extent` elements with some, one at least in the
  // first, and rows without any.
  with_nan,
  // The same with infinities: rows with one sign of them, with both, and with none.
  with_infinity,
  // Halves of whole numbers, evenly in [low, high): ties, zeros, and what rounds either way.
  // Integers and bool: as `integers`.
  halves,
};
inline constexpr FillKind kLastFillKind = FillKind::halves;

// `magnitudes`: what stands in `extent`.
enum class Signs : std::uint8_t {
  positive = 1,
  both = 2,
  share = 3,  // within [0, 1]: as close to 1 as to 0
};

// What to make. The limits are first cut to what the dtype holds (float32 and float64: to half of
// its largest number, so that their difference is finite). For every kind but `constant` and the
// diagonal of `positive_definite`, a value v of the tensor, after rounding to the dtype, keeps
// low ≤ v < high. A range that holds no value of the dtype gives the constant low.
// In complex tensors both parts follow the rule, except that only the real part of `distinct` and
// `increasing` is ordered; the imaginary part is uniform.
struct FillRule {
  FillKind kind = FillKind::uniform;
  double low = 0;
  double high = 1;
  std::int64_t extent = 1;  // see the kinds; less than 1 is read as 1
};

}  // namespace assay
