#pragma once

// The comparison of one pair of elements. Shared by host and CUDA.

#include <cstdint>
#include <type_traits>

#include "fill/host_device.h"
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

// The type in which a dtype is compared.
template <typename T>
using MeasureReal =
    std::conditional_t<kIsFloat<T> && !kIsComplex<T> && sizeof(T) <= 4, float, double>;

template <typename Real>
struct Pair {
  Real difference = 0;     // |a - b|, or 0 if not finite
  Real reference = 0;      // |b|, or 0 if not finite
  std::uint32_t ulps = 0;  // values from a to b; larger counts saturate at 2^31
  PairKind kind = PairKind::finite;
};

ASSAY_HD std::uint32_t clipped(std::uint64_t ulps) {
  return ulps >> 31 != 0 ? 0x80000000U : static_cast<std::uint32_t>(ulps);
}

// The index in Measurement::ulp_histogram: the number of bits of the distance.
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

// A float's rank in the order of its format, with both zeros at 0. T is a real type.
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

// a - b|, which always fits into the unsigned type.
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

// The kind of a pair that is not finite.
ASSAY_HD PairKind special_kind(bool left_nan, bool right_nan, bool same) {
  if (left_nan) return right_nan ? PairKind::both_nan : PairKind::nan_left_only;
  if (right_nan) return PairKind::nan_right_only;
  return same ? PairKind::inf_agree : PairKind::inf_disagree;
}

// The IEEE square root, the same on host and device.
ASSAY_HD double square_root(double value) {
#ifdef __CUDA_ARCH__
  return __dsqrt_rn(value);
#else
  return __builtin_sqrt(value);
#endif
}

// The length of (x, y) for x, y ≥ 0, from IEEE operations only, so that host and CUDA agree. Parts
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
ASSAY_HD bool is_nan(Complex<T> value) {
  return is_nan(value.real) || is_nan(value.imaginary);
}
template <typename T>
ASSAY_HD bool is_finite(Complex<T> value) {
  return is_finite(value.real) && is_finite(value.imaginary);
}

// True if an element of any type is neither NaN nor infinite.
template <typename T>
ASSAY_HD bool finite_element(T value) {
  if constexpr (kIsComplex<T>) {
    return is_finite(value);
  } else if constexpr (kIsFloat<T>) {
    return is_finite(real_of(value));
  } else {
    return true;
  }
}

// Compares finite elements.
template <typename T>
ASSAY_HD Pair<double> compare_finite(Complex<T> a, Complex<T> b) {
  const auto apart = [](T x, T y) {
    return magnitude(ieee::sub(static_cast<double>(x), static_cast<double>(y)));
  };
  Pair<double> pair;
  pair.difference = modulus<T>(apart(a.real, b.real), apart(a.imaginary, b.imaginary));
  pair.reference = modulus<T>(magnitude(static_cast<double>(b.real)),
                              magnitude(static_cast<double>(b.imaginary)));
  pair.ulps = ieee::larger(distance(place_of(a.real), place_of(b.real)),
                           distance(place_of(a.imaginary), place_of(b.imaginary)));
  return pair;
}
template <typename T>
ASSAY_HD Pair<MeasureReal<T>> compare_finite(T a, T b) {
  Pair<MeasureReal<T>> pair;
  if constexpr (kIsFloat<T>) {
    const auto y = real_of(b);
    pair.difference = magnitude(ieee::sub(real_of(a), y));
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

template <typename T>
ASSAY_HD bool nan_element(T value) {
  if constexpr (kIsComplex<T>) {
    return is_nan(value);
  } else {
    return is_nan(real_of(value));
  }
}

// Compares any two elements.
template <typename T>
ASSAY_HD Pair<MeasureReal<T>> compare(T a, T b) {
  if constexpr (kIsFloat<T>) {
    if (!finite_element(a) || !finite_element(b)) {
      bool same = false;
      if constexpr (kIsComplex<T>) {
        same = a.real == b.real && a.imaginary == b.imaginary;
      } else {
        same = real_of(a) == real_of(b);
      }
      Pair<MeasureReal<T>> pair;
      pair.kind = special_kind(nan_element(a), nan_element(b), same);
      return pair;
    }
  }
  return compare_finite(a, b);
}

}  // namespace assay
