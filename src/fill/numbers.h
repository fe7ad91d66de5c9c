#pragma once

// The element types as C++ types, with conversions for those that C++ does not have.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "case/dtype.h"
#include "fill/host_device.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace assay {

struct Boolean {
  std::uint8_t code;
};

// A binary floating-point format of 8 or 16 bits: sign, biased exponent, kMantissa stored bits.
// kOverflow is the magnitude code for values that round beyond the largest finite one.
template <typename Code, int kMantissaBits, int kExponentBias, std::uint32_t kOverflowCode,
          std::uint32_t kNanCode>
struct NarrowFloat {
  static constexpr int kMantissa = kMantissaBits;
  static constexpr int kBias = kExponentBias;
  static constexpr std::uint32_t kOverflow = kOverflowCode;
  static constexpr std::uint32_t kNan = kNanCode;
  static constexpr int kSignShift = 32 - 8 * static_cast<int>(sizeof(Code));
  static constexpr std::uint32_t kSignBit = 0x80000000U >> kSignShift;
  Code code;
};
using Float16 = NarrowFloat<std::uint16_t, 10, 15, 0x7C00, 0x7E00>;
using BFloat16 = NarrowFloat<std::uint16_t, 7, 127, 0x7F80, 0x7FC0>;
using Float8E4M3 =
    NarrowFloat<std::uint8_t, 3, 7, 0x7F, 0x7F>;  // has no infinity: values beyond 448 are NaN
using Float8E5M2 = NarrowFloat<std::uint8_t, 2, 15, 0x7C, 0x7E>;

template <typename T>
struct Complex {
  T real;
  T imaginary;
};

// Passes a type as a value, for visit().
template <typename T>
struct Type {
  using type = T;
};

// Calls f(Type<T>{}) with the C++ type of the dtype.
template <typename F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      return f(Type<Boolean>{});
    case DType::int8:
      return f(Type<std::int8_t>{});
    case DType::int16:
      return f(Type<std::int16_t>{});
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    case DType::float16:
      return f(Type<Float16>{});
    case DType::bfloat16:
      return f(Type<BFloat16>{});
    case DType::float32:
      return f(Type<float>{});
    case DType::float64:
      return f(Type<double>{});
    case DType::complex64:
      return f(Type<Complex<float>>{});
    case DType::complex128:
      return f(Type<Complex<double>>{});
    case DType::float8_e4m3fn:
      return f(Type<Float8E4M3>{});
    case DType::float8_e5m2:
      return f(Type<Float8E5M2>{});
    case DType::uint16:
      return f(Type<std::uint16_t>{});
    case DType::uint32:
      return f(Type<std::uint32_t>{});
    case DType::uint64:
      return f(Type<std::uint64_t>{});
  }
  __builtin_unreachable();
}

// Properties of a type. Part: the real type of one component. Real: the type of its arithmetic
// (void for integers and bool). A finite float value is a multiple of 2^kQuantum with at most
// kMantissa + 1 significant bits.
template <typename T>
struct Traits {
  using Part = T;
  using Real = void;
};
template <>
struct Traits<float> {
  using Part = float;
  using Real = float;
  static constexpr int kMantissa = 23;
  static constexpr int kQuantum = -149;
};
template <>
struct Traits<double> {
  using Part = double;
  using Real = double;
  static constexpr int kMantissa = 52;
  static constexpr int kQuantum = -1074;
};
template <typename Code, int kM, int kB, std::uint32_t kO, std::uint32_t kN>
struct Traits<NarrowFloat<Code, kM, kB, kO, kN>> {
  using Part = NarrowFloat<Code, kM, kB, kO, kN>;
  using Real = float;
  static constexpr int kMantissa = kM;
  static constexpr int kQuantum = 1 - kB - kM;
};
template <typename T>
struct Traits<Complex<T>> : Traits<T> {};

template <typename T>
using PartOf = Traits<T>::Part;
template <typename T>
using RealOf = Traits<T>::Real;
template <typename T>
inline constexpr bool kIsFloat = !std::is_void_v<RealOf<T>>;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<PartOf<T>, T>;

// Converts a narrow code to float, exactly.
template <typename T>
ASSAY_HD float widen(T value) {
  const std::uint32_t sign = (value.code & T::kSignBit) << T::kSignShift;
  const std::uint32_t magnitude = value.code & (T::kSignBit - 1);
  if constexpr (T::kBias == 127) {
    return ieee::float_of(sign | magnitude << (23 - T::kMantissa));
  } else {
    if (magnitude >= T::kOverflow) {
      const bool infinite = magnitude == T::kOverflow && magnitude != T::kNan;
      return ieee::float_of(sign | (infinite ? 0x7F800000U : 0x7FC00000U));
    }
    constexpr float kQuantum = 1.0F / static_cast<float>(1U << (T::kBias + T::kMantissa - 1));
    if (magnitude >> T::kMantissa == 0) {
      return ieee::float_of(sign |
                            ieee::bits_of(ieee::mul(static_cast<float>(magnitude), kQuantum)));
    }
    constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - T::kBias) << 23;
    return ieee::float_of(sign | ((magnitude << (23 - T::kMantissa)) + kRebias));
  }
}

// Rounds to nearest, ties to even, as the frameworks' casts do. Overflow gives infinity (NaN in
// e4m3fn).
template <typename T>
ASSAY_HD T narrow(float value) {
  constexpr int kDropped = 23 - T::kMantissa;
  const std::uint32_t bits = ieee::bits_of(value);
  const std::uint32_t sign = (bits & 0x80000000) >> T::kSignShift;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t code = 0;
  if (magnitude > 0x7F800000) {
    code = T::kNan;
  } else if (T::kBias != 127 && magnitude < static_cast<std::uint32_t>(128 - T::kBias) << 23) {
    // Subnormal in T: adding a float whose last bit is the quantum makes the adder round.
    constexpr std::uint32_t kMagic = static_cast<std::uint32_t>(151 - T::kBias - T::kMantissa)
                                     << 23;
    code = ieee::bits_of(ieee::add(ieee::float_of(magnitude), ieee::float_of(kMagic))) - kMagic;
  } else {
    const std::uint32_t odd = magnitude >> kDropped & 1;
    code = (magnitude + (1U << (kDropped - 1)) - 1 + odd) >> kDropped;
    code -= static_cast<std::uint32_t>(127 - T::kBias) << T::kMantissa;
    if (code > T::kOverflow) code = T::kOverflow;
  }
  using Code = decltype(T::code);
  return {static_cast<Code>(sign | code)};
}

// The nearest T of a real value that is not NaN. double to a format below float64 is rounded twice,
// through float32; this is monotone, so it keeps order and bounds.
template <typename T, typename Real>
ASSAY_HD T rounded(Real value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return static_cast<T>(value);
  } else {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, Float16>) {
      return {__half_as_ushort(__float2half_rn(static_cast<float>(value)))};
    }
    if constexpr (std::is_same_v<T, BFloat16>) {
      return {__bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(value)))};
    }
#endif
    return narrow<T>(static_cast<float>(value));
  }
}

// Converts an element to its arithmetic type, exactly.
template <typename T>
ASSAY_HD RealOf<T> real_of(T value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return value;
  } else {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, Float16>) return __half2float(__ushort_as_half(value.code));
#endif
    return widen(value);
  }
}

}  // namespace assay
