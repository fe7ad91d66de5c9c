#include "slot/values.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "leaves.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using testing::Lane;

template <typename T>
TensorBytes tensor(DType dtype, const std::vector<T>& elements) {
  return {dtype, std::as_bytes(std::span(elements))};
}

// Codes and their values, from the definitions of the formats.
TEST(Values, EveryDtypeWidensToWhatItMeans) {
  const std::vector<std::uint8_t> truth{0, 1, 2};
  EXPECT_THAT(real_values(tensor(DType::boolean, truth)), ElementsAre(0, 1, 1));
  const std::vector<std::int8_t> i8{-128, 127};
  EXPECT_THAT(real_values(tensor(DType::int8, i8)), ElementsAre(-128, 127));
  const std::vector<std::uint8_t> u8{128, 255};
  EXPECT_THAT(real_values(tensor(DType::uint8, u8)), ElementsAre(128, 255));
  const std::vector<std::int16_t> i16{-32768};
  EXPECT_THAT(real_values(tensor(DType::int16, i16)), ElementsAre(-32768));
  const std::vector<std::uint16_t> u16{65535};
  EXPECT_THAT(real_values(tensor(DType::uint16, u16)), ElementsAre(65535));
  const std::vector<std::int32_t> i32{std::numeric_limits<std::int32_t>::min()};
  EXPECT_THAT(real_values(tensor(DType::int32, i32)), ElementsAre(-2147483648.0));
  const std::vector<std::uint32_t> u32{0xffffffffU};
  EXPECT_THAT(real_values(tensor(DType::uint32, u32)), ElementsAre(4294967295.0));
  const std::vector<std::int64_t> i64{-(std::int64_t{1} << 53)};
  EXPECT_THAT(real_values(tensor(DType::int64, i64)), ElementsAre(-9007199254740992.0));
  const std::vector<std::uint64_t> u64{std::uint64_t{1} << 63U};
  EXPECT_THAT(real_values(tensor(DType::uint64, u64)), ElementsAre(9223372036854775808.0));
  const std::vector<std::uint16_t> half{0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00};
  EXPECT_THAT(real_values(tensor(DType::float16, half)),
              ElementsAre(1, -2, std::ldexp(1, -24), 65504, -INFINITY));
  const std::vector<std::uint16_t> brain{0x3f80, 0xc040, 0x7f80};
  EXPECT_THAT(real_values(tensor(DType::bfloat16, brain)), ElementsAre(1, -3, INFINITY));
  const std::vector<float> f32{0.1F};
  EXPECT_THAT(real_values(tensor(DType::float32, f32)), ElementsAre(static_cast<double>(0.1F)));
  const std::vector<double> f64{0.1};
  EXPECT_THAT(real_values(tensor(DType::float64, f64)), ElementsAre(0.1));
  const std::vector<std::uint8_t> e4m3{0x38, 0x7e, 0x01};  // 448 is its largest
  EXPECT_THAT(real_values(tensor(DType::float8_e4m3fn, e4m3)),
              ElementsAre(1, 448, std::ldexp(1, -9)));
  EXPECT_TRUE(
      std::isnan(real_values(tensor(DType::float8_e4m3fn, std::vector<std::uint8_t>{0x7f}))[0]));
  const std::vector<std::uint8_t> e5m2{0x3c, 0x7b, 0x7c};
  EXPECT_THAT(real_values(tensor(DType::float8_e5m2, e5m2)), ElementsAre(1, 57344, INFINITY));
  const std::vector<float> c64{1, -2};
  EXPECT_THAT(complex_values(tensor(DType::complex64, c64)),
              ElementsAre(std::complex<double>(1, -2)));
  const std::vector<double> c128{0.5, 4, 1, 0};
  EXPECT_THAT(complex_values(tensor(DType::complex128, c128)),
              ElementsAre(std::complex<double>(0.5, 4), std::complex<double>(1, 0)));
}

// Elements in an arena may have any alignment.
TEST(Values, NoAlignmentIsNeeded) {
  std::vector<std::byte> bytes(17);
  const double value = -7.25;
  std::memcpy(bytes.data() + 1, &value, sizeof value);
  EXPECT_THAT(real_values({DType::float64, std::span(bytes).subspan(1, 8)}), ElementsAre(-7.25));
}

TEST(Values, SortedByRealThenImaginaryNanLast) {
  ComplexValues values{{NAN, 0}, {2, 1}, {2, -1}, {-INFINITY, 0}, {0, 0}};
  sort_values(values);
  EXPECT_EQ(values[0], std::complex<double>(-INFINITY, 0));
  EXPECT_EQ(values[1], std::complex<double>(0, 0));
  EXPECT_EQ(values[2], std::complex<double>(2, -1));
  EXPECT_EQ(values[3], std::complex<double>(2, 1));
  EXPECT_TRUE(std::isnan(values[4].real()));
}

TEST(Values, MagnitudesForgetSignAndPhase) {
  ComplexValues values{{-3, 4}, {0, -2}, {-1, 0}};
  take_magnitudes(values);
  EXPECT_THAT(values, ElementsAre(std::complex<double>(5), std::complex<double>(2),
                                  std::complex<double>(1)));
}

bool accepted(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t offset,
              std::uint64_t bytes) {
  Lane lane;
  const Results results = lane.tensor_at("x", dtype, shape, offset, bytes).results();
  return Tensor::of(*results.leaves->Get(0), results.memory).has_value();
}

// A broken lane may send any numbers: nothing outside its arena is read.
TEST(Values, LeavesOutsideTheArenaAreRefused) {
  constexpr std::uint64_t kInside = 4096;
  EXPECT_TRUE(accepted(DType::float32, {2, 3}, kInside, 24));
  EXPECT_TRUE(accepted(DType::float32, {0, 3}, kInside, 0));
  EXPECT_TRUE(accepted(DType::float32, {3037000500, 3037000500, 0}, kInside, 0));
  EXPECT_FALSE(accepted(DType::float32, {3037000500, -3037000500, 0}, kInside, 0));
  EXPECT_FALSE(accepted(DType::float32, {2, 3}, kInside, 20));  // size and shape disagree
  EXPECT_FALSE(accepted(DType::float32, {2, 3}, 0, 24));        // the header
  EXPECT_FALSE(accepted(DType::float32, {2, 3}, wire::kArenaBytes - 8, 24));
  EXPECT_FALSE(accepted(DType::float32, {2}, ~std::uint64_t{0} - 3, 8));
  EXPECT_FALSE(accepted(DType::int8, {std::int64_t{1} << 40}, kInside, std::uint64_t{1} << 40U));
  EXPECT_FALSE(accepted(DType::float32, {-1}, kInside, ~std::uint64_t{0} - 3));
  EXPECT_FALSE(accepted(static_cast<DType>(kDTypes.size()), {1}, kInside, 1));
  // A product that wraps around to a size that would fit.
  EXPECT_FALSE(
      accepted(DType::float32, {std::int64_t{1} << 32, std::int64_t{1} << 32}, kInside, 0));
  EXPECT_FALSE(accepted(DType::int8, {-2, -3}, kInside, 6));
}

}  // namespace
}  // namespace assay
