// The plain loops, the AVX2 loops, and a third implementation from the definitions: all must give
// the same numbers on all kinds of data.

#include <cpuid.h>
#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <random>

#include "buffers.h"
#include "fill/fill.h"
#include "measure/kernels.h"

namespace assay {
namespace {

// How the right side is made from the left side.
enum class Change { nothing, last_bits, many_bits, anything, with_special, few };

template <typename Code>
void change(Bytes& bytes, Change how, std::mt19937_64& random) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Code)) {
    auto code = load<Code>(bytes.data() + i);
    const std::uint64_t draw = random();
    switch (how) {
      case Change::nothing:
        break;
      case Change::last_bits:
        code = static_cast<Code>(code + draw % 4);
        break;
      case Change::many_bits:
        code = static_cast<Code>(code ^ draw % 256);
        break;
      case Change::anything:
        code = static_cast<Code>(draw);
        break;
      case Change::with_special:
        // A sign, or the exponent all ones: infinity or NaN.
        if (draw % 100 == 0) code = static_cast<Code>(~code);
        if (draw % 150 == 1)
          code = static_cast<Code>(code | 0x7F80FF7F7C00FFF0U >> (64 - 8 * sizeof(Code)));
        break;
      case Change::few:
        code = static_cast<Code>(code + (draw % 500 == 0));
        break;
    }
    store(bytes.data() + i, code);
  }
}

Bytes changed(Bytes bytes, DType dtype, Change how, unsigned seed) {
  std::mt19937_64 random(seed);
  const bool complex = info(dtype).kind == DTypeClass::complex;
  switch (size_of(dtype) / (complex ? 2 : 1)) {
    case 1:
      change<std::uint8_t>(bytes, how, random);
      break;
    case 2:
      change<std::uint16_t>(bytes, how, random);
      break;
    case 4:
      change<std::uint32_t>(bytes, how, random);
      break;
    default:
      change<std::uint64_t>(bytes, how, random);
      break;
  }
  return bytes;
}

// A buffer with zeros of both signs, subnormals and uniform values.
Bytes base(DType dtype, std::size_t count, unsigned seed) {
  Bytes bytes(count * size_of(dtype));
  fill(default_rule(dtype), {.seed = seed}, dtype, bytes);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw = random() % 20;
    std::byte* const element = bytes.data() + i * size_of(dtype);
    if (draw == 0) std::fill_n(element, size_of(dtype), std::byte{0});
    if (draw == 1 && info(dtype).kind != DTypeClass::boolean) {
      std::fill_n(element, size_of(dtype), std::byte{0});
      element[size_of(dtype) - 1] = std::byte{0x80};
    }
    if (draw == 2) std::fill_n(element + 1, size_of(dtype) - 1, std::byte{0});
  }
  return bytes;
}

constexpr Change kChanges[] = {Change::nothing,  Change::last_bits,    Change::many_bits,
                               Change::anything, Change::with_special, Change::few};
constexpr Tolerance kTolerances[] = {{0, 0},       {1e-2, 1e-2}, {1e-5, 1.3e-6},
                                     {1e-8, 1e-5}, {0.5, 0.5},   {0, 1e-3}};

std::string label(DType dtype, Change how, std::size_t count) {
  return std::string(name(dtype)) + " change " + std::to_string(static_cast<int>(how)) + " of " +
         std::to_string(count);
}

// Replaces NaN, which is unequal to itself, by a number.
bool same(Measurement a, Measurement b) {
  for (Offender* const offender : {&a.first, &a.worst, &b.first, &b.worst}) {
    for (auto* const side : {&offender->left, &offender->right}) {
      for (double& value : *side) value = std::isnan(value) ? 12345 : value;
    }
  }
  return a == b;
}

TEST(Twins, Avx2AndPortableLoopsFindTheSame) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  unsigned seed = 0;
  for (const DTypeInfo& dtype : kDTypes) {
    for (const Change how : kChanges) {
      for (const std::size_t count : {1U, 15U, 1023U, 2048U, 20011U}) {
        const Bytes left = base(dtype.dtype, count, ++seed);
        const Bytes right = changed(left, dtype.dtype, how, seed);
        for (const Tolerance under : kTolerances) {
          const auto fast = measure_with(avx2_measure_kernels(), dtype.dtype, left, right, under);
          const auto plain =
              measure_with(portable_measure_kernels(), dtype.dtype, left, right, under);
          ASSERT_TRUE(same(fast, plain)) << label(dtype.dtype, how, count);
          const auto swapped =
              measure_with(avx2_measure_kernels(), dtype.dtype, right, left, under);
          ASSERT_EQ(swapped.max_abs, plain.max_abs);
          ASSERT_EQ(swapped.ulp_histogram, plain.ulp_histogram);
        }
      }
    }
  }
}

// Long runs of small differences use the quick pass; rare large ones must still be found.
TEST(Twins, TheQuickLookMissesNothing) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  constexpr std::size_t kCount = 400000;
  std::mt19937_64 random(1);
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    Bytes left(kCount * size_of(dtype));
    fill(default_rule(dtype), {}, dtype, left);
    Bytes right = changed(left, dtype, Change::last_bits, 5);
    for (int i = 0; i < 40; ++i) {
      std::byte* const byte = right.data() + random() % right.size();
      *byte ^= static_cast<std::byte>(random() % 256);
    }
    for (const Tolerance under : kTolerances) {
      ASSERT_TRUE(same(measure_with(avx2_measure_kernels(), dtype, left, right, under),
                       measure_with(portable_measure_kernels(), dtype, left, right, under)))
          << name(dtype) << " under " << under.atol << ", " << under.rtol;
    }
  }
}

// XGETBV(1) reports the state in use; bit 2 is the upper halves of the 256-bit registers.
[[gnu::target("xsave")]] bool wide_registers_in_use() { return (_xgetbv(1) >> 2 & 1) != 0; }

bool can_say_what_is_in_use() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(0xD, 1, &a, &b, &c, &d) != 0 && (a >> 2 & 1) != 0;
}

// While they are in use, code compiled without AVX can take five times as long.
TEST(Twins, Avx2LoopsLeaveNoWideRegisterInUse) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  if (!can_say_what_is_in_use()) GTEST_SKIP() << "this processor does not say what is in use";
  for (const DTypeInfo& dtype : kDTypes) {
    for (const Change how : kChanges) {
      for (const std::size_t count : {20011, 20480}) {  // whole blocks take another path at the end
        const Bytes left = base(dtype.dtype, count, 1);
        const Bytes right = changed(left, dtype.dtype, how, 1);
        (void)measure_with(avx2_measure_kernels(), dtype.dtype, left, right, {0.01, 0.01});
        EXPECT_FALSE(wide_registers_in_use()) << label(dtype.dtype, how, count);
      }
    }
  }
}

// The definitions in plain code, for float32 and float64.
template <typename T>
Measurement by_definition(const Bytes& left, const Bytes& right, Tolerance under) {
  using Code = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  Measurement m;
  m.under = under;
  T worst = 0;
  for (std::size_t i = 0; i < left.size(); i += sizeof(T)) {
    const T a = load<T>(left.data() + i);
    const T b = load<T>(right.data() + i);
    const std::uint64_t index = m.count++;
    m.bit_equal += std::bit_cast<Code>(a) == std::bit_cast<Code>(b);
    bool disagrees = false;
    T excess = 0;
    if (std::isnan(a) || std::isnan(b)) {
      m.both_nan += std::isnan(a) && std::isnan(b);
      m.nan_left_only += !std::isnan(b);
      m.nan_right_only += !std::isnan(a);
      disagrees = !(std::isnan(a) && std::isnan(b));
    } else if (std::isinf(a) || std::isinf(b)) {
      disagrees = a != b;
      m.inf_disagree += disagrees;
      m.ulp_histogram[0] += !disagrees;
    } else {
      const T d = std::abs(a - b);
      m.max_abs = std::max<double>(m.max_abs, d);
      if (b != 0) m.max_rel = std::max<double>(m.max_rel, d / std::abs(b));
      for (std::size_t g = 0; g < kRtolGrid.size(); ++g) {
        const T needed = std::fma(-static_cast<T>(kRtolGrid[g]), std::abs(b), d);
        m.atol_needed[g] = std::max<double>(m.atol_needed[g], needed);
      }
      excess = std::fma(-static_cast<T>(under.rtol), std::abs(b), d);
      disagrees = double{excess} > under.atol;
      // Distance: the difference of the codes' magnitudes, or their sum if the signs differ.
      const Code mask = std::numeric_limits<Code>::max() >> 1;
      const Code x = std::bit_cast<Code>(a) & mask;
      const Code y = std::bit_cast<Code>(b) & mask;
      const Code ulps =
          std::signbit(a) != std::signbit(b) ? x + y : std::max(x, y) - std::min(x, y);
      ++m.ulp_histogram[std::min<std::size_t>(std::bit_width(ulps), kUlpBuckets - 1)];
    }
    const bool special = disagrees && !(std::isfinite(a) && std::isfinite(b));
    if (special) excess = std::numeric_limits<T>::infinity();
    const Offender here{index, {a, 0}, {b, 0}, excess};
    m.beyond += disagrees;
    if (disagrees && !m.first) m.first = here;
    if (excess > worst) {
      worst = excess;
      m.worst = here;
    }
  }
  return m;
}

TEST(Twins, BothAreTheDefinition) {
  unsigned seed = 1000;
  for (const Change how : kChanges) {
    for (const Tolerance under : kTolerances) {
      const Bytes single = base(DType::float32, 5003, ++seed);
      const Bytes single_changed = changed(single, DType::float32, how, seed);
      EXPECT_TRUE(same(measure(DType::float32, single, single_changed, under),
                       by_definition<float>(single, single_changed, under)))
          << label(DType::float32, how, seed);
      const Bytes wide = base(DType::float64, 5003, ++seed);
      const Bytes wide_changed = changed(wide, DType::float64, how, seed);
      EXPECT_TRUE(same(measure(DType::float64, wide, wide_changed, under),
                       by_definition<double>(wide, wide_changed, under)))
          << label(DType::float64, how, seed);
    }
  }
}

}  // namespace
}  // namespace assay
