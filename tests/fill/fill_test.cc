// Properties of every kind: purity, the same bits from every kernel, the layout of the stream, the
// bounds of the values.

#include "fill/fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "fill/checksum.h"
#include "fill/element.h"
#include "fill/make_plan.h"
#include "tensor.h"

namespace assay {
namespace {

using testing::Each;

constexpr FillKind kKinds[] = {
    FillKind::uniform,    FillKind::integers,      FillKind::distinct,
    FillKind::increasing, FillKind::symmetric,     FillKind::positive_definite,
    FillKind::boxes,      FillKind::constant,      FillKind::magnitudes,
    FillKind::with_nan,   FillKind::with_infinity, FillKind::halves,
    FillKind::ends,       FillKind::corners,       FillKind::rows};

std::string label(DType dtype, const FillRule& rule) {
  return std::string(name(dtype)) + " kind " + std::to_string(static_cast<int>(rule.kind)) + " [" +
         std::to_string(rule.low) + ", " + std::to_string(rule.high) + ")";
}

TEST(Fill, AnElementDependsOnItsIndexAndNotOnWhereTheFillBegan) {
  constexpr std::size_t kCount = 5000;
  for (const DTypeInfo& dtype : kDTypes) {
    for (const FillKind kind : kKinds) {
      const FillRule rule{kind, -3, 5, 7};
      const auto whole = make(rule, dtype.dtype, kCount);
      for (const std::size_t first : {1U, 2U, 5U, 1023U, 4999U}) {
        const auto tail = make(rule, dtype.dtype, kCount - first, first);
        ASSERT_TRUE(std::equal(tail.begin(), tail.end(),
                               whole.begin() + static_cast<long>(first * dtype.size)))
            << label(dtype.dtype, rule) << " from " << first;
      }
    }
  }
}

TEST(Seeds, OfRunsSideBySideGiveFrameworksOthers) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    seeds.insert(framework_seed(seed, 0x123456789ABCDEF0));
    EXPECT_LT(framework_seed(seed, ~std::uint64_t{0}), std::uint64_t{1} << 63);
  }
  EXPECT_EQ(seeds.size(), 1000U);
}

TEST(Fill, LoopsOverAChunkGiveWhatEachElementIsByItself) {
  constexpr std::size_t kCount = 3000;
  constexpr std::uint64_t kFirst = 1021;
  for (const DTypeInfo& dtype : kDTypes) {
    for (const FillKind kind : kKinds) {
      for (const std::int64_t extent : {1, 7, 2000}) {
        const FillRule rule{kind, 0.25, 300, extent};
        const auto made = make(rule, dtype.dtype, kCount, kFirst);
        const FillPlan plan = make_plan(rule, kKey, dtype.dtype);
        TensorDraws draws(plan.stream);
        visit(dtype.dtype, [&]<typename T>(Type<T>) {
          using Part = PartOf<T>;
          constexpr int kParts = kIsComplex<T> ? 2 : 1;
          for (std::size_t i = 0; i < kCount * kParts; ++i) {
            const auto value = part_value<Part>(plan, draws, kFirst + i / kParts, kParts,
                                                static_cast<int>(i % kParts));
            ASSERT_EQ(std::memcmp(&value, made.data() + i * sizeof(Part), sizeof(Part)), 0)
                << label(dtype.dtype, rule) << " extent " << extent << " part " << i;
          }
        });
      }
    }
  }
}

void expect_as_portable(const FillKernels& kernels) {
  const FillRule rules[] = {
      {FillKind::uniform, -0.5, 0.5, 1},    {FillKind::uniform, 1, 1.03, 1},
      {FillKind::uniform, -1e30, 3e4, 1},   {FillKind::uniform, 0, 1e-40, 1},
      {FillKind::integers, -100, 70000, 1}, {FillKind::distinct, -1, 1, 500},
      {FillKind::distinct, -1, 1, 2},       {FillKind::distinct, 0, 9, 70000}};
  for (const DTypeInfo& dtype : kDTypes) {
    for (const FillRule& rule : rules) {
      for (const std::size_t count : {0U, 1U, 7U, 8U, 31U, 1025U, 9001U}) {
        for (const std::uint64_t first :
             {std::uint64_t{0}, std::uint64_t{3}, (std::uint64_t{1} << 34) - 1}) {
          // One byte in front makes the buffer unaligned.
          std::vector<std::byte> fast(count * dtype.size + 1);
          std::vector<std::byte> plain(fast.size());
          fill_with(kernels, rule, kKey, dtype.dtype, std::span(fast).subspan(1), first);
          fill_with(portable_fill_kernels(), rule, kKey, dtype.dtype, std::span(plain).subspan(1),
                    first);
          ASSERT_EQ(fast, plain) << label(dtype.dtype, rule) << " " << count << " from " << first;
        }
      }
    }
  }
}

TEST(Fill, Avx2AndPortableLoopsGiveTheSameBits) {
  if (!has_avx2()) GTEST_SKIP() << "this machine has no AVX2";
  expect_as_portable(avx2_fill_kernels());
}

// Computes the layout of the stream from Philox itself. A change of it changes every input of every
// stored run, and must increase kFillVersion.
TEST(Fill, TakesItsValuesFromTheWordsInOrder) {
  const Stream stream = make_stream(kKey.seed, kKey.case_id, kKey.tensor);
  const auto word = [&](std::uint64_t j) { return block_of(stream, j / 4).word[j % 4]; };
  const FillRule half{FillKind::uniform, -0.5, 0.5, 1};
  const auto f32 = values(half, DType::float32, 9);
  const auto f64 = values(half, DType::float64, 9);
  const auto c64 = values(half, DType::complex64, 9);
  const auto f16 = make(half, DType::float16, 9);
  const auto bf16 = make(half, DType::bfloat16, 9);
  const auto i64 = values({FillKind::integers, -1000, 1000, 1}, DType::int64, 9);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(f32[i], (word(i) >> 8) / 0x1p24 - 0.5);
    EXPECT_EQ(c64[2 * i + 1], (word(2 * i + 1) >> 8) / 0x1p24 - 0.5);
    const std::uint64_t pair = std::uint64_t{word(2 * i + 1)} << 32 | word(2 * i);
    EXPECT_EQ(f64[i], static_cast<double>(pair >> 11) / 0x1p53 - 0.5);
    const std::uint32_t half_word = i % 2 == 0 ? word(i / 2) & 0xFFFF : word(i / 2) >> 16;
    const auto real = static_cast<float>(half_word / 0x1p16 - 0.5);
    EXPECT_EQ(load<std::uint16_t>(f16.data() + 2 * i), narrow<Float16>(real).code);
    EXPECT_EQ(load<std::uint16_t>(bf16.data() + 2 * i), narrow<BFloat16>(real).code);
    EXPECT_EQ(i64[i], std::floor(word(i) * 2000.0 / 0x1p32) - 1000);
  }
}

TEST(Fill, ValuesStayInsideTheRangeAfterRounding) {
  const FillRule rules[] = {
      {FillKind::uniform, -0.5, 0.5, 1}, {FillKind::uniform, 1, 1.02, 1},
      {FillKind::uniform, 0.3, 0.7, 1},  {FillKind::uniform, -100.7, 99.3, 1},
      {FillKind::integers, -5, 3, 1},    {FillKind::integers, 0.5, 300.5, 1},
      {FillKind::distinct, -1, 1, 100},  {FillKind::distinct, 2, 2.1, 4000},
      {FillKind::increasing, 0, 1, 64},  {FillKind::increasing, -7, 100, 3000},
      {FillKind::boxes, 0, 17, 1},       {FillKind::symmetric, -1, 1, 9}};
  for (const DTypeInfo& dtype : kDTypes) {
    const bool real = dtype.kind == DTypeClass::floating || dtype.kind == DTypeClass::complex;
    for (const FillRule& rule : rules) {
      if (!real && std::ceil(rule.low) >= std::ceil(rule.high)) continue;
      if (dtype.kind == DTypeClass::boolean && rule.low >= 2) continue;
      if (dtype.size == 1 && real && rule.high - rule.low < 0.2) continue;  // no value inside
      for (const double value : values(rule, dtype.dtype, 20000)) {
        ASSERT_GE(value, rule.low) << label(dtype.dtype, rule);
        ASSERT_LT(value, rule.high) << label(dtype.dtype, rule);
      }
    }
  }
}

// A range so narrow that its ends are drawn, because it has only a few values of the dtype.
TEST(Fill, NarrowRangesKeepTheirOpenEnd) {
  for (const auto& [dtype, step] : {std::pair{DType::float64, 0x1p-50},
                                    {DType::float32, 0x1p-21},
                                    {DType::float16, 0x1p-8},
                                    {DType::bfloat16, 0x1p-5}}) {
    for (const double low : {4.0, -8.0 + 4 * step}) {
      const auto drawn = values({FillKind::uniform, low, low + 3 * step, 1}, dtype, 1000);
      EXPECT_THAT(std::set<double>(drawn.begin(), drawn.end()),
                  testing::ElementsAre(low, low + step, low + 2 * step))
          << name(dtype);
    }
  }
}

// Pearson's chi-squared over 64 equal cells: 63 degrees of freedom exceed 150 with p < 1e-8.
TEST(Fill, UniformValuesAreEven) {
  for (const DType dtype : {DType::float16, DType::float32, DType::float64, DType::complex64,
                            DType::int16, DType::int64}) {
    const FillKind kind = FillKind::uniform;
    constexpr std::size_t kCount = 64000;
    std::vector<double> cells(64);
    const auto drawn = values({kind, -32, 32, 1}, dtype, kCount);
    for (const double value : drawn) ++cells[static_cast<std::size_t>(std::floor(value) + 32)];
    const double expected = static_cast<double>(drawn.size()) / 64;
    double chi = 0;
    for (const double cell : cells) chi += (cell - expected) * (cell - expected) / expected;
    EXPECT_LT(chi, 150) << name(dtype);
  }
}

TEST(Fill, KeysGiveUnrelatedTensors) {
  const FillRule rule{FillKind::uniform, -0.5, 0.5, 1};
  constexpr std::size_t kCount = 10000;
  const auto base = values(rule, DType::float64, kCount);
  for (const FillKey& key : {FillKey{1, 2, 3}, FillKey{kKey.seed, kKey.case_id, 2},
                             FillKey{kKey.seed, kKey.case_id + 1, 1}}) {
    const auto other = values(rule, DType::float64, kCount, key);
    double product = 0;
    for (std::size_t i = 0; i < kCount; ++i) product += base[i] * other[i];
    // The correlation of independent values is approximately normal with deviation 1/√n.
    EXPECT_LT(std::abs(product * 12 / kCount), 6 / std::sqrt(kCount));
  }
}

TEST(Fill, WholeRangesOfTheWidestTypesAreReached) {
  const auto wide = values({FillKind::integers, -0x1p63, 0x1p63, 1}, DType::int64, 1000);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -0x1.E0p62);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 0x1.E0p62);
  const auto big = values({FillKind::integers, 0, 0x1p64, 1}, DType::uint64, 1000);
  EXPECT_GT(*std::max_element(big.begin(), big.end()), 0x1.E0p63);
  const auto full = values({FillKind::uniform, -1e308, 1.7e308, 1}, DType::float64, 1000);
  for (const double value : full) ASSERT_TRUE(std::isfinite(value));
}

TEST(Fill, RangesWithoutAValueGiveTheLowEnd) {
  const double nan = std::nan("");
  EXPECT_THAT(values({FillKind::uniform, 2, 2, 1}, DType::float32, 9), Each(2.0));
  EXPECT_THAT(values({FillKind::uniform, 3, 1, 1}, DType::int32, 9), Each(3.0));
  EXPECT_THAT(values({FillKind::distinct, 0.25, 0.75, 9}, DType::int8, 9), Each(0.0));
  EXPECT_THAT(values({FillKind::boxes, 300, 400, 1}, DType::uint8, 9), Each(255.0));
  EXPECT_THAT(values({FillKind::uniform, nan, 1, 1}, DType::uint64, 9), Each(0.0));
  EXPECT_THAT(values({FillKind::uniform, nan, 1, 1}, DType::float16, 9), Each(testing::IsNan()));
  EXPECT_THAT(values({FillKind::increasing, 1, nan, 0}, DType::float64, 9), Each(1.0));
}

TEST(Fill, DefaultsAreTheDocumentedOnes) {
  for (const DTypeInfo& dtype : kDTypes) {
    const auto drawn = values(default_rule(dtype.dtype), dtype.dtype, 100000);
    const auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
    switch (dtype.dtype) {
      case DType::boolean:
        EXPECT_EQ(std::pair(*low, *high), std::pair(0.0, 1.0));
        break;
      case DType::int8:
        EXPECT_EQ(std::pair(*low, *high), std::pair(-128.0, 127.0));
        break;
      case DType::uint8:
        EXPECT_EQ(std::pair(*low, *high), std::pair(0.0, 255.0));
        break;
      case DType::uint16:
      case DType::uint32:
      case DType::uint64:
        EXPECT_EQ(std::pair(*low, *high), std::pair(0.0, 999.0));
        break;
      case DType::int16:
      case DType::int32:
      case DType::int64:
        EXPECT_EQ(std::pair(*low, *high), std::pair(-1000.0, 999.0));
        break;
      default:
        EXPECT_EQ(*low, dtype.size < 4 ? -0.5 : std::clamp(*low, -0.5, -0.4999));
        EXPECT_EQ(*high, std::clamp(*high, 0.43, std::nextafter(0.5, 0.0)));
    }
  }
}

// The XXH3 specification's value for no input and seed 0, and the property of a checksum.
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum({}), 0x2D06800538D394C2U);
  auto bytes = make({}, DType::float32, 1000);
  const std::uint64_t before = checksum(bytes);
  bytes[3999] ^= std::byte{1};
  EXPECT_NE(checksum(bytes), before);
}

// The GPU's hash functions against the library, for every length with its own formula and at the
// edges of stripes and blocks.
TEST(Checksum, TheDevicesFunctionsAreTheLibrarys) {
  const auto bytes = make(default_rule(DType::uint8), DType::uint8, 5000);
  const auto* const raw = reinterpret_cast<const unsigned char*>(bytes.data());
  for (std::uint32_t size = 0; size <= kChecksumChunk; ++size) {
    ASSERT_EQ(xxh3::hash(raw + 1, size), checksum({bytes.data() + 1, size})) << size;
  }
}

TEST(Checksum, OfManyChunksTellsTheirOrderAndLength) {
  auto bytes = make(default_rule(DType::uint8), DType::uint8, 3 * kChecksumChunk + 5);
  const std::uint64_t before = checksum(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + kChecksumChunk, bytes.begin() + kChecksumChunk);
  EXPECT_NE(checksum(bytes), before);
  std::swap_ranges(bytes.begin(), bytes.begin() + kChecksumChunk, bytes.begin() + kChecksumChunk);
  EXPECT_EQ(checksum(bytes), before);
  bytes.back() ^= std::byte{1};
  EXPECT_NE(checksum(bytes), before);
  bytes.back() ^= std::byte{1};
  bytes.push_back(std::byte{0});
  EXPECT_NE(checksum(bytes), before);
}

// Tensors of equal chunks have checksums that depend on the number of chunks.
TEST(Checksum, SeesHowOftenAChunkRepeats) {
  const std::vector<std::byte> zeros(64 * kChecksumChunk);
  std::set<std::uint64_t> seen;
  for (std::size_t chunks = 1; chunks <= 64; ++chunks) {
    seen.insert(checksum({zeros.data(), chunks * kChecksumChunk}));
  }
  EXPECT_EQ(seen.size(), 64U);
}

TEST(UpstreamRule, SuitsTheSizeOfTheInputs) {
  const auto reach = [](DType dtype, std::uint64_t count, std::uint64_t inputs) {
    const FillRule rule = upstream_rule(dtype, count, inputs);
    EXPECT_EQ(rule.low, -rule.high);
    return rule.high;
  };
  EXPECT_EQ(reach(DType::float32, 40, 40), 4);
  EXPECT_EQ(reach(DType::float64, 80, 40), 4);
  EXPECT_EQ(reach(DType::float32, 1, 1000), 4 * 512);  // a mean: gradients near 1, not 0.001
  EXPECT_EQ(reach(DType::complex64, 10, 45), 16);
  EXPECT_EQ(reach(DType::float32, 1, std::uint64_t{1} << 40U), 4 * 65536);
  EXPECT_EQ(reach(DType::float32, 0, 0), 4);
  EXPECT_EQ(reach(DType::bfloat16, 1, 1000), 0.5);
  EXPECT_EQ(reach(DType::float32, 100'000, 100'000), 0.5);
}

}  // namespace
}  // namespace assay
