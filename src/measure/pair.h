#pragma once

// The comparison of one pair of elements: the functions that host and CUDA share.

#include <cstdint>
#include <type_traits>

#include "fill/hd.h"
#include "fill/numbers.h"

namespace assay {

enum class PairKind : std::uint8_t {
  finite,
  both_nan,
  nan_left_only,
  nan_right_only,
  inf_agree,
  inf_disagree,
};

// The type that a dtype is compared in.
template <typename T>
using MeasureReal =
    std::conditional_t<kIsFloat<T> && !kIsComplex<T> && sizeof(T) <= 4, float, double>;

template <typename Real>
struct Pair {
  Real difference = 0;     // |a - b|; 0 unless finite
  Real reference = 0;      // |b|; 0 unless finite
  std::uint32_t ulps = 0;  // values from a to b; from 2^31 on they are not told apart
  PairKind kind = PairKind::finite;
};

ASSAY_HD std::uint32_t clipped(std::uint64_t ulps) {
  return ulps >> 31 != 0 ? 0x80000000U : static_cast<std::uint32_t>(ulps);
}

// The bucket of a measurement's ULP histogram: the number of bits of the distance.
ASSAY_HD int ulp_bucket(std::uint32_t ulps) {
#ifdef __CUDA_ARCH__
  return 32 - __clz(static_cast<int>(ulps));
#else
  return 63 - __builtin_clzll(2 * std::uint64_t{ulps} + 1);
#endif
}

ASSAY_HD float magnitude(float value) { return ieee::float_of(ieee::bits_of(value) & 0x7FFFFFFF); }
ASSAY_HD double magnitude(double value) {
  return ieee::double_of(ieee::bits_of(value) & 0x7FFFFFFFFFFFFFFF);
}
template <typename Real>
ASSAY_HD bool is_nan(Real value) {
  return value != value;
}
template <typename Real>
ASSAY_HD bool is_finite(Real value) {
  return value - value == 0;
}

// A float's place in the order of its format, both zeros at 0. T is a real type.
ASSAY_HD std::int64_t place_of(double value) {
  const auto bits = static_cast<std::int64_t>(ieee::bits_of(value));
  const std::int64_t rank = bits & 0x7FFFFFFFFFFFFFFF;
  return bits < 0 ? -rank : rank;
}
ASSAY_HD std::int32_t place_of(float value) {
  const auto bits = static_cast<std::int32_t>(ieee::bits_of(value));
  const std::int32_t rank = bits & 0x7FFFFFFF;
  return bits < 0 ? -rank : rank;
}
template <typename T>
ASSAY_HD std::int32_t place_of(T value) {
  const auto rank = static_cast<std::int32_t>(value.code & (T::kSignBit - 1));
  return (value.code & T::kSignBit) != 0 ? -rank : rank;
}

// |a - b|, which the unsigned type always holds.
ASSAY_HD std::uint32_t distance(std::int32_t a, std::int32_t b) {
  const auto x = static_cast<std::uint32_t>(a);
  const auto y = static_cast<std::uint32_t>(b);
  return a < b ? y - x : x - y;
}
ASSAY_HD std::uint32_t distance(std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  return clipped(a < b ? y - x : x - y);
}

template <typename Real>
ASSAY_HD PairKind kind_of(Real a, Real b) {
  if (is_nan(a)) return is_nan(b) ? PairKind::both_nan : PairKind::nan_left_only;
  if (is_nan(b)) return PairKind::nan_right_only;
  if (is_finite(a) && is_finite(b)) return PairKind::finite;
  return a == b ? PairKind::inf_agree : PairKind::inf_disagree;
}

ASSAY_HD double square_root(double value) {
#ifdef __CUDA_ARCH__
  return __dsqrt_rn(value);
#else
  return __builtin_sqrt(value);
#endif
}

// The length of (x, y) for x, y ≥ 0, of IEEE operations alone, so that host and CUDA agree. Parts
// of T = float cannot overflow in double; those of double are scaled first. Exact along the axes.
template <typename T>
ASSAY_HD double modulus(double x, double y) {
  if constexpr (std::is_same_v<T, float>) {
    return square_root(ieee::fused(x, x, ieee::mul(y, y)));
  } else {
    const double longer = ieee::larger(x, y);
    const double shorter = ieee::smaller(x, y);
    if (shorter == 0 || !is_finite(longer)) return longer;
    const double ratio = ieee::div(shorter, longer);
    return ieee::mul(longer, square_root(ieee::fused(ratio, ratio, 1.0)));
  }
}

template <typename T>
ASSAY_HD Pair<double> compare(Complex<T> a, Complex<T> b) {
  const auto real_kind = kind_of(a.real, b.real);
  const auto imaginary_kind = kind_of(a.imaginary, b.imaginary);
  Pair<double> pair;
  if (real_kind == PairKind::finite && imaginary_kind == PairKind::finite) {
    pair.difference = modulus<T>(
        magnitude(ieee::sub(static_cast<double>(a.real), static_cast<double>(b.real))),
        magnitude(ieee::sub(static_cast<double>(a.imaginary), static_cast<double>(b.imaginary))));
    pair.reference = modulus<T>(magnitude(static_cast<double>(b.real)),
                                magnitude(static_cast<double>(b.imaginary)));
    pair.ulps = ieee::larger(distance(place_of(a.real), place_of(b.real)),
                             distance(place_of(a.imaginary), place_of(b.imaginary)));
    return pair;
  }
  const bool left_nan = is_nan(a.real) || is_nan(a.imaginary);
  const bool right_nan = is_nan(b.real) || is_nan(b.imaginary);
  if (left_nan || right_nan) {
    pair.kind = !right_nan  ? PairKind::nan_left_only
                : !left_nan ? PairKind::nan_right_only
                            : PairKind::both_nan;
  } else {
    const bool same = a.real == b.real && a.imaginary == b.imaginary;
    pair.kind = same ? PairKind::inf_agree : PairKind::inf_disagree;
  }
  return pair;
}

// A real, integer or bool pair.
template <typename T>
ASSAY_HD Pair<MeasureReal<T>> compare(T a, T b) {
  Pair<MeasureReal<T>> pair;
  if constexpr (kIsFloat<T>) {
    const auto x = real_of(a);
    const auto y = real_of(b);
    pair.kind = kind_of(x, y);
    if (pair.kind != PairKind::finite) return pair;
    pair.difference = magnitude(ieee::sub(x, y));
    pair.reference = magnitude(y);
    pair.ulps = distance(place_of(a), place_of(b));
  } else if constexpr (std::is_same_v<T, Boolean>) {
    pair.ulps = (a.code != 0) != (b.code != 0) ? 1 : 0;
    pair.difference = pair.ulps;
    pair.reference = b.code != 0 ? 1 : 0;
  } else {
    const std::uint64_t apart = a < b
                                    ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
                                    : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
    pair.difference = static_cast<double>(apart);
    pair.reference = magnitude(static_cast<double>(b));
    pair.ulps = clipped(apart);
  }
  return pair;
}

}  // namespace assay
