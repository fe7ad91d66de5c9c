// Compares two results, leaf by leaf.

#include "slot/compare.h"

#include <gmock/gmock.h>

#include <random>

#include "leaves.h"
#include "measure/draw_distribution.h"

namespace assay {
namespace {

using testing::Lane;
using wire::Equality;
using wire::LeafKind;

constexpr Tolerance kTolerance{0.01, 0.01};

// The comparisons of two lanes' results, kept alive.
class Compared {
 public:
  Compared(Lane& left, Lane& right, ResultRole role = ResultRole::output, Look* look = nullptr) {
    flatbuffers::FlatBufferBuilder builder;
    auto comparisons = compare(builder, left.results(), right.results(), role, kTolerance, look);
    if (!comparisons) {
      error_ = comparisons.error().message;
      return;
    }
    const auto outputs = builder.CreateVector(*comparisons);
    wire::PairBuilder record(builder);
    record.add_outputs(outputs);
    builder.Finish(record.Finish());
    bytes_ = {wire::bytes_of(builder).begin(), wire::bytes_of(builder).end()};
  }

  const std::string& error() const { return error_; }
  std::size_t size() const { return all()->size(); }
  const wire::Comparison& operator[](flatbuffers::uoffset_t i) const { return *all()->Get(i); }

 private:
  const flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>* all() const {
    return flatbuffers::GetRoot<wire::Pair>(bytes_.data())->outputs();
  }
  std::string error_;
  wire::Bytes bytes_;
};

template <typename T>
Compared one_tensor(DType left_dtype, const std::vector<T>& left, const std::vector<T>& right,
                    Equality equality = Equality::value) {
  Lane a;
  Lane b;
  const auto count = static_cast<std::int64_t>(left.size());
  a.tensor("", left_dtype, {count}, left, equality);
  b.tensor("", left_dtype, {count}, right, equality);
  return Compared(a, b);
}

TEST(Compare, MeasuresInTheDtypeItself) {
  const auto compared = one_tensor<float>(DType::float32, {1, 2, 3}, {1, 2, 3.5});
  ASSERT_NE(compared[0].measurement(), nullptr);
  EXPECT_EQ(compared[0].measurement()->count(), 3U);
  EXPECT_EQ(compared[0].measurement()->bit_equal(), 2U);
  EXPECT_EQ(compared[0].measurement()->beyond(), 1U);
  EXPECT_EQ(compared[0].measurement()->max_abs(), 0.5);
  EXPECT_EQ(compared[0].measurement()->first()->index(), 2U);
  EXPECT_EQ(compared[0].measurement()->first()->right(), 3.5);
}

// 2^53 and the next integer are the same double.
TEST(Compare, BitsAreComparedInTheDtypeItself) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 53;
  const auto compared =
      one_tensor<std::int64_t>(DType::int64, {1, kLarge}, {1, kLarge + 1}, Equality::bits);
  ASSERT_NE(compared[0].measurement(), nullptr);
  EXPECT_EQ(compared[0].measurement()->bit_equal(), 1U);
  EXPECT_EQ(compared[0].measurement()->max_abs(), 1);
}

// Another dtype is a mismatch, and the values are still measured.
TEST(Compare, DifferentDtypesAreComparedByValue) {
  Lane left;
  Lane right;
  left.tensor<float>("", DType::float32, {2}, {1, 5});
  right.tensor<std::int64_t>("", DType::int64, {2}, {1, 7});
  const Compared compared(left, right);
  EXPECT_EQ(compared[0].left()->dtype(), static_cast<std::uint8_t>(DType::float32));
  EXPECT_EQ(compared[0].right()->dtype(), static_cast<std::uint8_t>(DType::int64));
  EXPECT_EQ(compared[0].measurement()->bit_equal(), 1U);
  EXPECT_EQ(compared[0].measurement()->max_abs(), 2);

  Lane real;
  Lane complex;
  real.tensor<double>("", DType::float64, {1}, {3});
  complex.tensor<float>("", DType::complex64, {1}, {3, 4});
  EXPECT_EQ(Compared(real, complex)[0].measurement()->max_abs(), 4);
}

// On either side, in any number of blocks.
TEST(Compare, LentResultsAreMeasuredLikeAnyOther) {
  std::vector<float> one(300'001, 0.25F);
  std::vector<float> other = one;
  other[70'000] = 0.5F;
  other[299'999] = 2.25F;
  for (const bool both : {false, true}) {
    Lane left;
    Lane right;
    left.lent("", DType::float32, one);
    both ? right.lent("", DType::float32, other)
         : right.tensor("", DType::float32, {300'001}, other);
    const Compared compared(left, right);
    const wire::Measurement* measured = compared[0].measurement();
    ASSERT_NE(measured, nullptr);
    EXPECT_EQ(measured->count(), 300'001U);
    EXPECT_EQ(measured->bit_equal(), 299'999U);
    EXPECT_EQ(measured->beyond(), 2U);
    EXPECT_EQ(measured->max_abs(), 2);
    EXPECT_EQ(measured->first()->index(), 70'000U);
    EXPECT_EQ(measured->worst()->index(), 299'999U);
  }
}

TEST(Compare, WidenedResultsAreMeasuredLikeAnyOther) {
  constexpr std::size_t kCount = 30'001;
  std::vector<float> one(kCount, 2);
  one[9'000] = 3;
  one[kCount - 1] = -5;
  Lane left;
  Lane right;
  left.lent("", DType::float32, one);
  right.tensor("", DType::int64, {kCount}, std::vector<std::int64_t>(kCount, 2));
  const Compared by_value(left, right);
  const wire::Measurement* measured = by_value[0].measurement();
  ASSERT_NE(measured, nullptr);
  EXPECT_EQ(measured->count(), kCount);
  EXPECT_EQ(measured->bit_equal(), kCount - 2);
  EXPECT_EQ(measured->max_abs(), 7);
  EXPECT_EQ(measured->first()->index(), 9'000U);
  EXPECT_EQ(measured->worst()->index(), kCount - 1);

  std::vector<float> turned(kCount, -2);
  turned[20'000] = 4;
  Lane signs;
  Lane straight;
  signs.tensor("", DType::float32, {kCount}, turned);
  straight.tensor("", DType::float32, {kCount}, std::vector<float>(kCount, 2), Equality::sign);
  const Compared by_sign(signs, straight);
  EXPECT_EQ(by_sign[0].measurement()->bit_equal(), kCount - 1);
  EXPECT_EQ(by_sign[0].measurement()->first()->index(), 20'000U);
}

// A difference of 64 ulps of 1 in the first block; the scale that excuses it is in the last one.
TEST(Compare, HowFarApartIsMeasuredAtTheScaleOfAllBlocks) {
  std::vector<float> one(30'001, 1);
  one.back() = 1024;
  std::vector<float> other = one;
  other[5] += 0x1p-17F;
  Lane left;
  Lane right;
  left.lent("", DType::float32, other);
  right.lent("", DType::float32, one, /*scale_floor=*/1);
  Look look;
  look.closer = true;
  const Compared compared(left, right, ResultRole::output, &look);
  EXPECT_GT(compared[0].apart(), 0);
  EXPECT_LT(compared[0].apart(), 1);
  look.most = one.size() - 1;
  EXPECT_EQ(Compared(left, right, ResultRole::output, &look)[0].apart(), INFINITY);
}

TEST(Compare, LentResultsOfADeadLaneAreAnError) {
  const std::vector<float> values(300'000);
  Lane left;
  Lane right;
  left.lent("", DType::float32, values);
  right.lent("", DType::float32, values);
  right.gone = true;
  EXPECT_EQ(Compared(left, right).error(), "the lane is gone");
}

TEST(Compare, DifferentShapesAreNotMeasured) {
  Lane left;
  Lane right;
  left.tensor<float>("", DType::float32, {2, 1}, {1, 2});
  right.tensor<float>("", DType::float32, {1, 2}, {1, 2});
  const Compared compared(left, right);
  EXPECT_EQ(compared[0].measurement(), nullptr);
  EXPECT_THAT(*compared[0].left()->shape(), ::testing::ElementsAre(2, 1));
  EXPECT_THAT(*compared[0].right()->shape(), ::testing::ElementsAre(1, 2));
}

TEST(Compare, SignSortedAndShapeEquality) {
  const std::vector<float> turned{-1, 2, -3};
  const std::vector<float> straight{1, 2, 3};
  EXPECT_GT(one_tensor(DType::float32, turned, straight)[0].measurement()->beyond(), 0U);
  EXPECT_EQ(one_tensor(DType::float32, turned, straight, Equality::sign)[0].measurement()->beyond(),
            0U);
  const std::vector<float> wrong{-1, 2, -4};
  EXPECT_EQ(one_tensor(DType::float32, wrong, straight, Equality::sign)[0].measurement()->beyond(),
            1U);

  const std::vector<float> shuffled{3, 1, 2};
  EXPECT_EQ(
      one_tensor(DType::float32, shuffled, straight, Equality::sorted)[0].measurement()->beyond(),
      0U);
  const std::vector<float> twice{3, 3, 1};
  EXPECT_EQ(
      one_tensor(DType::float32, twice, straight, Equality::sorted)[0].measurement()->beyond(), 1U);
  // Complex eigenvalues in any order.
  const std::vector<float> eigen{1, -2, 1, 2};
  const std::vector<float> other{1, 2, 1, -2};
  Lane a;
  Lane b;
  a.tensor("", DType::complex64, {2}, eigen, Equality::sorted);
  b.tensor("", DType::complex64, {2}, other, Equality::sorted);
  EXPECT_EQ(Compared(a, b)[0].measurement()->beyond(), 0U);

  EXPECT_EQ(one_tensor(DType::float32, wrong, straight, Equality::shape)[0].measurement(), nullptr);
}

TEST(Compare, LeavesArePairedByPath) {
  Lane left;
  Lane right;
  left.tensor<float>("[0]", DType::float32, {1}, {1}).scalar("[1]", LeafKind::none);
  right.scalar("[2]", LeafKind::integer, 0, 0, "5").tensor<float>("[0]", DType::float32, {1}, {1});
  const Compared compared(left, right);
  ASSERT_EQ(compared.size(), 3U);
  EXPECT_EQ(compared[0].path()->str(), "[0]");
  EXPECT_FALSE(compared[0].left()->missing() || compared[0].right()->missing());
  EXPECT_EQ(compared[1].path()->str(), "[1]");
  EXPECT_TRUE(compared[1].right()->missing());
  EXPECT_FALSE(compared[1].scalar_equal());
  EXPECT_EQ(compared[2].path()->str(), "[2]");
  EXPECT_TRUE(compared[2].left()->missing());
  EXPECT_FALSE(compared[2].scalar_equal());
}

bool scalars_equal(LeafKind kind, double a, double b, std::int64_t x = 0, std::int64_t y = 0,
                   const std::string& text = "", const std::string& other = "") {
  Lane left;
  Lane right;
  left.scalar("", kind, a, x, text);
  right.scalar("", kind, b, y, other);
  return Compared(left, right)[0].scalar_equal();
}

TEST(Compare, ByTheErrorBarANumberMayHaveARoundingOfFloat32) {
  const auto equal = [](double a, double b) {
    Lane left;
    Lane right;
    left.scalar("", LeafKind::floating, a, 0);
    right.scalar("", LeafKind::floating, b, 0);
    Look look;
    look.by_bar = true;
    return Compared(left, right, ResultRole::output, &look)[0].scalar_equal();
  };
  EXPECT_TRUE(equal(1, 1 + 0x1p-23));
  EXPECT_FALSE(equal(1, 1.00001));
  EXPECT_FALSE(equal(1e-5, 2e-5));
}

TEST(Compare, ScalarsOfEachKind) {
  EXPECT_TRUE(scalars_equal(LeafKind::floating, 1, 1.019));  // atol + rtol·1.019
  EXPECT_FALSE(scalars_equal(LeafKind::floating, 1, 1.03));
  EXPECT_TRUE(scalars_equal(LeafKind::floating, NAN, NAN));
  EXPECT_FALSE(scalars_equal(LeafKind::floating, NAN, 1));
  EXPECT_TRUE(scalars_equal(LeafKind::floating, INFINITY, INFINITY));
  EXPECT_FALSE(scalars_equal(LeafKind::floating, INFINITY, -INFINITY));
  EXPECT_FALSE(scalars_equal(LeafKind::floating, 1, INFINITY));
  EXPECT_TRUE(scalars_equal(LeafKind::boolean, 0, 0, 1, 1));
  EXPECT_FALSE(scalars_equal(LeafKind::boolean, 0, 0, 1, 0));
  EXPECT_TRUE(scalars_equal(LeafKind::integer, 0, 0, 0, 0, "12", "12"));
  EXPECT_FALSE(scalars_equal(LeafKind::integer, 0, 0, 0, 0, "12", "13"));
  EXPECT_FALSE(scalars_equal(LeafKind::text, 0, 0, 0, 0, "a", "b"));
  EXPECT_TRUE(scalars_equal(LeafKind::none, 0, 0));
}

TEST(Compare, AScalarIsNoTensor) {
  Lane left;
  Lane right;
  left.tensor<float>("", DType::float32, {}, {5});
  right.scalar("", LeafKind::floating, 5);
  EXPECT_FALSE(Compared(left, right)[0].scalar_equal());
}

// A gradient that one framework leaves out counts as zeros, on either side.
TEST(Compare, AMissingGradientIsZeros) {
  for (const bool named : {false, true}) {  // None, or absent
    for (const float value : {0.0F, 1e-30F}) {
      Lane zeros;
      Lane nothing;
      zeros.tensor<float>("x", DType::float32, {2}, {0, value});
      if (named) nothing.scalar("x", LeafKind::none);
      const bool equal = value == 0;
      EXPECT_EQ(Compared(zeros, nothing, ResultRole::gradient)[0].scalar_equal(), equal);
      Lane again;
      Lane other;
      again.tensor<float>("x", DType::float32, {2}, {0, value});
      if (named) other.scalar("x", LeafKind::none);
      EXPECT_EQ(Compared(other, again, ResultRole::gradient)[0].scalar_equal(), equal);
    }
  }
  Lane output;
  Lane nothing;
  output.tensor<float>("x", DType::float32, {1}, {0});
  EXPECT_FALSE(Compared(output, nothing, ResultRole::output)[0].scalar_equal());
}

TEST(Compare, ALeafOutsideTheArenaIsAnError) {
  Lane left;
  Lane right;
  left.tensor_at("", DType::float32, {2}, wire::kArenaBytes, 8);
  right.tensor<float>("", DType::float32, {2}, {1, 2});
  EXPECT_THAT(Compared(left, right).error(), ::testing::HasSubstr("arena"));
}

TEST(Compare, ALeafWithoutShapeIsAnError) {
  for (const LeafKind kind : {LeafKind::tensor, LeafKind::distribution}) {
    Lane good;
    Lane bad;
    good.tensor<float>("", DType::float32, {1}, {1});
    bad.without_shape(kind);
    EXPECT_THAT(Compared(good, bad).error(), ::testing::HasSubstr("without shape"));
  }
  Lane bad;
  Lane good;
  bad.without_shape(LeafKind::tensor);
  good.tensor<float>("", DType::float32, {1}, {1});
  EXPECT_THAT(Compared(bad, good).error(), ::testing::HasSubstr("without shape"));
}

// Whether `drawn` obeys a distribution, or the error.
template <typename T>
std::string draw_says(DType dtype, const std::vector<std::int64_t>& shape,
                      const std::vector<T>& drawn, const std::string& distribution,
                      const std::vector<std::vector<double>>& arrays,
                      const std::vector<double>& numbers) {
  Lane left;
  Lane right;
  left.tensor("", dtype, shape, drawn);
  right.distribution(distribution, dtype, shape, arrays, numbers);
  const Compared compared(left, right);
  if (!compared.error().empty()) return compared.error();
  return compared[0].distribution()->holds() ? "holds" : "fails";
}

// More draws than one block.
TEST(DrawDistributions, WhatIsKeptIsToldAcrossBlocks) {
  constexpr std::size_t kCount = 50'000;
  std::mt19937_64 random(1);
  std::vector<double> values(kCount);
  std::vector<double> others(kCount);
  std::vector<float> dropped(kCount);
  std::vector<float> either(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = static_cast<float>(1 + i % 7);
    others[i] = -values[i];
    const bool kept = std::bernoulli_distribution(0.7)(random);
    dropped[i] = kept ? static_cast<float>(values[i]) : 0;
    either[i] = static_cast<float>(kept ? values[i] : others[i]);
  }
  const auto says = [&](const std::vector<float>& drawn, const std::string& distribution,
                        const std::vector<std::vector<double>>& arrays, double share) {
    return draw_says(DType::float32, {static_cast<std::int64_t>(kCount)}, drawn, distribution,
                     arrays, {share, 0});
  };
  EXPECT_EQ(says(dropped, "kept", {values}, 0.7), "holds");
  EXPECT_EQ(says(dropped, "kept", {values}, 0.75), "fails");
  EXPECT_EQ(says(dropped, "kept", {others}, 0.7), "fails");
  EXPECT_EQ(says(either, "either", {values, others}, 0.7), "holds");
  EXPECT_EQ(says(either, "either", {others, values}, 0.7), "fails");
  EXPECT_EQ(says(either, "kept", {values}, 0.7), "fails");
  dropped.back() += 0.5F;
  EXPECT_EQ(says(dropped, "kept", {values}, 0.7), "fails");
  EXPECT_THAT(says(dropped, "kept", {{1, 2}}, 0.7), ::testing::HasSubstr("differ in size"));
}

// Parameters that would make the measurement read beyond an array or ask for all memory.
TEST(DrawDistributions, ImpossibleParametersAreAnError) {
  const std::vector<double> drawn{0, 1, 2, 3};
  const auto says = [&](const std::string& distribution,
                        const std::vector<std::vector<double>>& arrays,
                        const std::vector<double>& numbers) {
    return draw_says(DType::float64, {4}, drawn, distribution, arrays, numbers);
  };
  for (const double bad : {1e18, 5.0, -1.0, 0.5, double(NAN), double(INFINITY)}) {
    EXPECT_THAT(says("permutation", {}, {bad}), ::testing::HasSubstr("extent")) << bad;
    EXPECT_THAT(says("categorical", {{1, 1, 1, 1}}, {bad, 1}), ::testing::HasSubstr("categor"))
        << bad;
  }
  EXPECT_EQ(says("permutation", {}, {4}), "holds");
  EXPECT_EQ(says("categorical", {{1, 1, 1, 1}}, {4, 1}), "holds");
  EXPECT_THAT(says("categorical", {{1, 1, 1, 1}}, {3, 1}), ::testing::HasSubstr("row"));
  EXPECT_THAT(says("permutation", {{4, 4, 4, 4}}, {}), ::testing::HasSubstr("a number is wanted"));
  EXPECT_THAT(says("permutation", {}, {}), ::testing::HasSubstr("number of parameters"));
}

// "groups" come last, behind the share, as arrays: the helper above has arrays first.
TEST(DrawDistributions, ImpossibleGroupsAreAFault) {
  const std::vector<double> values(4, 1.0);
  const auto fault = [&](double group) {
    const std::vector<DrawParameter> parameters{{0, values}, {0.5, {}}, {0, {0, 0, 0, group}}};
    return parameter_fault(DrawDistribution::kept, parameters, values.size());
  };
  EXPECT_EQ(fault(3), "");
  for (const double bad : {1e18, 4.0, -1.0, 0.5, double(NAN), double(INFINITY)}) {
    EXPECT_THAT(fault(bad), ::testing::HasSubstr("groups")) << bad;
  }
}

// Both parts of a complex draw are judged, each by its part of the parameters.
TEST(DrawDistributions, AComplexDrawIsTwo) {
  constexpr std::int64_t kCount = 4000;
  std::vector<float> uniform;  // in [2, 3) and [2, 5), in turn
  std::mt19937 random(1);
  std::uniform_real_distribution<float> unit(0, 1);
  for (std::int64_t i = 0; i < kCount; ++i) {
    uniform.push_back(2 + unit(random));
    uniform.push_back(2 + 3 * unit(random));
  }
  const auto says = [&](const std::vector<double>& numbers) {
    return draw_says(DType::complex64, {kCount}, uniform, "uniform", {}, numbers);
  };
  EXPECT_EQ(says({2, 3}), "fails");  // the imaginary parts go beyond
  EXPECT_EQ(says({2, 5}), "fails");  // the real parts do not reach it
  std::vector<float> both = uniform;
  for (std::size_t i = 1; i < both.size(); i += 2) both[i] = (both[i] - 2) / 3 + 2;
  const std::vector<double> low(kCount, 2);
  EXPECT_EQ(draw_says(DType::complex64, {kCount}, both, "uniform", {}, {2, 3}), "holds");
  EXPECT_EQ(draw_says(DType::complex64, {kCount}, both, "uniform", {low}, {3}), "holds");
  for (std::size_t i = 1; i < both.size(); i += 2) both[i] = 2;  // no spread
  EXPECT_EQ(draw_says(DType::complex64, {kCount}, both, "uniform", {}, {2, 3}), "fails");
}

TEST(DrawDistributions, OnlyWeightsHaveASizeOfTheirOwn) {
  const std::vector<std::int64_t> drawn{0, 2, 2, 1, 1, 0};
  const std::vector<double> weights{1, 0, 1, 1, 1, 0};  // two rows of three categories
  EXPECT_EQ(draw_says(DType::int64, {2, 3}, drawn, "categorical", {weights}, {3, 1}), "holds");
  const std::vector<std::int64_t> other{1, 2, 2, 1, 1, 0};
  EXPECT_EQ(draw_says(DType::int64, {2, 3}, other, "categorical", {weights}, {3, 1}), "fails");
  EXPECT_THAT(draw_says(DType::int64, {6}, drawn, "bernoulli", {{0.5, 0.5}}, {}),
              ::testing::HasSubstr("a parameter and the result differ in size"));
  EXPECT_THAT(draw_says(DType::int64, {6}, drawn, "unheard", {}, {}),
              ::testing::HasSubstr("an unknown distribution"));
}

}  // namespace
}  // namespace assay
