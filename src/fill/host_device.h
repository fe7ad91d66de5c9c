#pragma once

// Macros and functions that let host and CUDA compile the same source and get the same bits. All
// arithmetic on values uses these functions. Each is one IEEE operation, rounded to nearest and
// never contracted: the host uses -ffp-contract=off, and nvcc does not fuse the __f*_rn intrinsics.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

static_assert(std::endian::native == std::endian::little, "values are laid out little-endian");

// always_inline on the host: some functions are compiled with and without AVX2, and the linker must
// not choose the AVX2 copy for a machine without AVX2.
#ifdef __CUDACC__
#define ASSAY_HD __host__ __device__ inline
#else
#define ASSAY_HD inline __attribute__((always_inline))
#endif

namespace assay::ieee {

ASSAY_HD std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
ASSAY_HD std::uint64_t bits_of(double value) { return __builtin_bit_cast(std::uint64_t, value); }
ASSAY_HD float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
ASSAY_HD double double_of(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }

#ifdef __CUDA_ARCH__
ASSAY_HD float add(float a, float b) { return __fadd_rn(a, b); }
ASSAY_HD float sub(float a, float b) { return __fsub_rn(a, b); }
ASSAY_HD float mul(float a, float b) { return __fmul_rn(a, b); }
ASSAY_HD float div(float a, float b) { return __fdiv_rn(a, b); }
ASSAY_HD double add(double a, double b) { return __dadd_rn(a, b); }
ASSAY_HD double sub(double a, double b) { return __dsub_rn(a, b); }
ASSAY_HD double mul(double a, double b) { return __dmul_rn(a, b); }
ASSAY_HD double div(double a, double b) { return __ddiv_rn(a, b); }
#else
ASSAY_HD float add(float a, float b) { return a + b; }
ASSAY_HD float sub(float a, float b) { return a - b; }
ASSAY_HD float mul(float a, float b) { return a * b; }
ASSAY_HD float div(float a, float b) { return a / b; }
ASSAY_HD double add(double a, double b) { return a + b; }
ASSAY_HD double sub(double a, double b) { return a - b; }
ASSAY_HD double mul(double a, double b) { return a * b; }
ASSAY_HD double div(double a, double b) { return a / b; }
#endif

// a · b + c, rounded once.
ASSAY_HD float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ASSAY_HD double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// The smaller of two numbers, or a if b is NaN.
template <typename T>
ASSAY_HD T smaller(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) return fminf(a, b);
  if constexpr (std::is_same_v<T, double>) return fmin(a, b);
#endif
  return b < a ? b : a;
}
template <typename T>
ASSAY_HD T larger(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) return fmaxf(a, b);
  if constexpr (std::is_same_v<T, double>) return fmax(a, b);
#endif
  return a < b ? b : a;
}

// 2^exponent, for exponents of normal numbers: -1022 to 1023.
ASSAY_HD double power_of_two(int exponent) {
  return double_of(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The high 64 bits of a · b.
ASSAY_HD std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

}  // namespace assay::ieee
